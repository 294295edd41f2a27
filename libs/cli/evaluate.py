"""`five eval` and `five report`: ask a running run."""

import asyncio
import json

from cli import report
from cli.rundir import RunFolder
from five.ratings import wilson_interval
from rapid.clients.evaluator import EvaluatorClient, MatchResult
from rapid.store.connection import connect, require_reachable
from rapid.store.series import Series
from rapid.store.state import RunState
from run.load import load

MATCH_SECONDS = 3600.0


def evaluate(folder: RunFolder, version: int, against: str, games: int, seed: int, as_json: bool) -> int:
    """Plays a match on the run's evaluator and prints the result. Raises NoRun, CallFailed."""
    cluster = folder.cluster()
    config = load(folder.path / "cluster.yaml")

    async def play() -> MatchResult:
        client = EvaluatorClient([cluster.evaluator], config.rpc, config.name, folder.token())
        try:
            return await client.play_match(version, against, games, seed, replay=True, deadline=MATCH_SECONDS)
        finally:
            await client.close()

    result = asyncio.run(play())
    low, high = wilson_interval(result.won + 0.5 * result.drawn, games)
    if as_json:
        print(json.dumps({
            "version": result.version, "against": against, "won": result.won, "lost": result.lost,
            "drawn": result.drawn, "win_rate_interval": [low, high], "mean_game_seconds": result.mean_game_seconds,
            "statistics": result.statistics, "opponent_statistics": result.opponent_statistics,
            "replay": result.replay_path}))
        return 0
    print(f"version {result.version} against {against}: won {result.won}, lost {result.lost}, drawn {result.drawn} of "
          f"{games} games (win rate {100 * low:.0f} to {100 * high:.0f} %, 95 % confidence)")
    print(f"mean length {result.mean_game_seconds:.0f} s of game time")
    for name, value in result.statistics.items():
        print(f"  {name.replace('_', ' '):12s} {value:9.1f}   opponent {result.opponent_statistics[name]:9.1f}")
    if result.replay_path:
        print(f"replay: {result.replay_path}    render it: five watch {result.replay_path}")
    return 0


def write_report(folder: RunFolder) -> int:
    """Writes the report of a running run now. Raises NoRun."""
    folder.cluster()
    config = load(folder.path / "cluster.yaml")
    client = connect(config.store.state_url, config.store)
    require_reachable(client, config.store.state_url, "state")
    records = report.collect(RunState(client, config.name), Series(client, config.name), config.buffer.sample_reuse)
    report.write(records, folder.report)
    print(folder.report)
    return 0
