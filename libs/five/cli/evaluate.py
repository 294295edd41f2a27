"""`five eval` and `five report`: play a match, write a report."""

import asyncio
import json
from pathlib import Path
from typing import Any

from five.agent.ratings import wilson_interval
from five.clients.evaluator import EvaluatorClient, MatchResult
from five.evaluation.saved_state import save_evidence, save_record
from five.local.run_folder import ClusterInfo, RunFolder, RunUnavailable
from five.reports import run_report
from five.reports.html_page import page, rebuild_page
from five.run.load import ConfigError, load_stored
from five.services.controller.games.recordings import RecordingReader
from rapid.atomic_file import replace_text
from rapid.blobs import BlobStore
from rapid.store import acl
from rapid.store.connection import connect, require_reachable
from rapid.store.series import Series
from rapid.store.state import RunState

MATCH_SECONDS = 3600.0


def evaluate(folder: RunFolder, version: int, against: str, games: int, seed: int, as_json: bool,
             greedy: bool = False, offline: bool = False) -> int:
    """Play a match and print the result. Return the exit status.

    A running run's evaluator plays it. For a run that has ended, and with ``offline`` or ``greedy``, this process
    plays it from archived versions. Raises RunUnavailable, CallFailed, ConfigError.
    """
    try:
        cluster = None if offline or greedy else folder.cluster()
    except RunUnavailable:
        cluster = None
    outcome = _offline(folder, version, against, games, seed, greedy) if cluster is None else \
        _on_evaluator(folder, cluster, version, against, games, seed)
    if as_json:
        print(json.dumps(outcome))
        return 0
    low, high = outcome["win_rate_interval"]
    print(f"version {outcome['version']} against {against}: won {outcome['won']}, lost {outcome['lost']}, drawn "
          f"{outcome['drawn']} of {outcome['games']} games (score {100 * low:.0f} to {100 * high:.0f} %, 95 % "
          "confidence, a drawn game is half a win)")
    print(f"mean length {outcome['mean_game_seconds']:.0f} s of game time")
    for name, value in outcome["statistics"].items():
        print(f"  {name.replace('_', ' '):12s} {value:9.1f}   opponent {outcome['opponent_statistics'][name]:9.1f}")
    if outcome["replay"]:
        print(f"replay: {outcome['replay']}    render it with: five watch {outcome['replay']}")
    return 0


def _on_evaluator(folder: RunFolder, cluster: ClusterInfo, version: int, against: str, games: int, seed: int
                  ) -> dict[str, Any]:
    config = load_stored(folder.path / "cluster.yaml")

    async def play() -> MatchResult:
        client = EvaluatorClient([cluster.evaluator], config.rpc, config.name, folder.cli_secret())
        try:
            return await client.play_match(version, against, games, seed, replay=True, deadline=MATCH_SECONDS)
        finally:
            await client.close()

    result = asyncio.run(play())
    return {
        "version": result.version, "against": against, "games": games, "won": result.won, "lost": result.lost,
        "drawn": result.drawn, "win_rate_interval": list(wilson_interval(result.won + 0.5 * result.drawn, games)),
        "mean_game_seconds": result.mean_game_seconds, "statistics": result.statistics,
        "opponent_statistics": result.opponent_statistics, "replay": result.replay_path}


def _offline(folder: RunFolder, version: int, against: str, games: int, seed: int, greedy: bool) -> dict[str, Any]:
    """Play the match from archived versions. Games come in pairs with sides swapped, so an odd number is rounded up."""
    from dota.vec_game import BOTS
    from five.evaluation.archived_versions import ArchivedVersions
    from five.evaluation.match import Contestant, play

    if against not in BOTS and not against.isdigit():
        raise ConfigError(f"--against {against!r}: expected a version's number or one of {', '.join(BOTS)}")
    archive = ArchivedVersions(folder)
    number, policy, _ = archive.load(version)
    opponent = Contestant.bot(against) if against in BOTS else Contestant(f"version-{against}",
                                                                          archive.load(int(against))[1])
    path = folder.path / "replays" / f"version-{number}-{opponent.name}-{seed}.replay"
    path.parent.mkdir(parents=True, exist_ok=True)
    match = play(archive.config.game, Contestant(f"version-{number}", policy), opponent, (games + 1) // 2, seed,
                 greedy=greedy, record=lambda replay, final: replay.save(path, final))
    won, drawn, lost = match.counts
    ours, theirs = match.statistics()
    return {"version": number, "against": against, "games": len(match.games), "won": won, "lost": lost, "drawn": drawn,
            "win_rate_interval": list(match.interval()), "mean_game_seconds": match.seconds, "statistics": ours,
            "opponent_statistics": theirs, "replay": str(path)}


def render_report(data: Path) -> int:
    """Render the page of a report's data (benchmarks/learning/*.json) beside it. Return the exit status.

    Raises RuntimeError for a file that holds no report.
    """
    target = data.with_suffix(".html")
    try:
        replace_text(target, page(json.loads(data.read_text(encoding="utf-8"))))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RuntimeError(f"{data}: not the data of a report ({error})") from None
    print(target)
    return 0


def write_report(folder: RunFolder) -> int:
    """Write the report of a run. Return the exit status.

    The report of a run that has ended is rendered again from its own data. Raises RunUnavailable if the run is not
    running and left no report, RuntimeError if its report is unreadable.
    """
    try:
        folder.cluster()
    except RunUnavailable:
        if not folder.report.exists():
            raise
        try:
            replace_text(folder.report, rebuild_page(folder.report.read_text(encoding="utf-8")))
        except ValueError as error:
            raise RuntimeError(f"{folder.report}: {error}") from None
        print(folder.report)
        return 0
    config = load_stored(folder.path / "cluster.yaml")
    client = connect(config.store.state_url, config.store, "state",
                     folder.login(acl.CONTROLLER, config.store.state_url))
    require_reachable(client, config.store.state_url, "state")
    records = run_report.collect(RunState(client, config.name), Series(client, config.name))
    blobs = BlobStore(config.blobs.url or str(folder.path / "blobs"))
    run_report.write(records, folder.report, run_report.newest_film(RecordingReader(lambda: blobs)))
    save_record(RunState(client, config.name), folder.record)
    save_evidence(records.games, folder.evidence)
    print(folder.report)
    return 0
