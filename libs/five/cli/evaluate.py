"""`five eval` and `five report`: play a match, write a report."""

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dota.config import GameConfig
from dota.replay import Replay
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
from rapid.malformed import MALFORMED
from rapid.store import acl
from rapid.store.connection import connect, require_reachable
from rapid.store.series import Series
from rapid.store.state import RunState

if TYPE_CHECKING:  # they need torch, which takes a second to import
    from dota.vec_game import VecGame
    from five.evaluation.archived_versions import ArchivedVersions
    from five.evaluation.match import Contestant


class Details(NamedTuple):
    """Details of a match that are printed after its result: deaths of heroes; abilities and items that they used."""

    deaths: bool = False
    casts: bool = False


def evaluate(folder: RunFolder, version: int, against: str, games: int, seed: int, as_json: bool,
             greedy: bool = False, offline: bool = False, details: Details = Details(),
             temperature: float | None = None) -> int:
    """Play a match and print the result. Return the exit status.

    A running run's evaluator plays it. For a run that has ended, for a packed agent as the opponent, and with
    ``offline``, ``greedy``, ``details`` or a ``temperature``, this process plays it from archived versions. Raises
    RunUnavailable, CallFailed, ConfigError, AgentUnavailable.
    """
    from dota.vec_game import BOTS

    here = offline or greedy or any(details) or temperature is not None or not (against in BOTS or against.isdigit())
    try:
        cluster = None if here else folder.cluster()
    except RunUnavailable:
        cluster = None
    outcome = _offline(folder, version, against, games, seed, greedy, details, temperature or 1.0) \
        if cluster is None else \
        _on_evaluator(folder, cluster, version, against, games, seed)
    _print_outcome(f"version {outcome['version']}", outcome, as_json)
    return 0


def evaluate_agent(name: str, against: str, games: int, seed: int, as_json: bool, greedy: bool = False,
                   replay: Path | None = None, details: Details = Details(), temperature: float | None = None) -> int:
    """Play a match of a packed agent in its own game, in this process, by default at its card's temperature, and print
    the result. Return the exit status.

    Raises AgentUnavailable, ConfigError.
    """
    from five.evaluation.match import Contestant
    from five.packed_agents.folder import find_agent

    if replay is not None and replay.is_dir():
        raise ConfigError(f"--replay {replay}: is a folder; give the name of a file")
    agent = find_agent(name, temperature)
    game, label = agent.config.game, agent.card.name
    for change in agent.rule_changes:
        print(f"the rules have changed since agent {label!r} was evaluated: {change}", file=sys.stderr)
    contestant = Contestant(label, agent.policy())
    outcome = {"agent": label,
               **_play(game, contestant, _opponent(against, game), games, seed, greedy, replay, details)}
    _print_outcome(f"agent {label}", outcome, as_json)
    return 0


def _print_outcome(player: str, outcome: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(outcome))
        return
    low, high = outcome["win_rate_interval"]
    print(f"{player} against {outcome['against']}: won {outcome['won']}, lost {outcome['lost']}, drawn "
          f"{outcome['drawn']} of {outcome['games']} games (score {100 * low:.0f} to {100 * high:.0f} %, 95 % "
          "confidence, a drawn game is half a win)")
    print(f"mean length {outcome['mean_game_seconds']:.0f} s of game time")
    for name, value in outcome["statistics"].items():
        print(f"  {name.replace('_', ' '):12s} {value:9.1f}   opponent {outcome['opponent_statistics'][name]:9.1f}")
    if "deaths" in outcome:
        _print_deaths(outcome["deaths"], outcome["opponent_deaths"])
    if "casts" in outcome:
        _print_casts(outcome["casts"], outcome["opponent_casts"])
    if outcome["replay"]:
        print(f"replay: {outcome['replay']}    render it with: five watch {outcome['replay']}")


def _print_deaths(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    """Print two contestants' deaths (`five.evaluation.deaths.summarise`) beside each other."""
    def number(value: float) -> str:
        return f"{value:.1f}"

    def percent(value: float) -> str:
        return f"{100 * value:.0f} %"

    def line(label: str, text: Callable[[float], str], own: float | None, other: float | None) -> None:
        values = ["-" if value is None else text(value) for value in (own, other)]
        print(f"  {label:28s} {values[0]:>9s}   opponent {values[1]:>9s}")

    print("deaths of a hero")
    line("a game", number, ours["per_game"], theirs["per_game"])
    for kind in sorted({*ours["killers"], *theirs["killers"]}):
        line("by others" if kind == "other" else f"by a {kind}", percent, ours["killers"].get(kind),
             theirs["killers"].get(kind))
    for label, text, name in (("allies near it", number, "allies"), ("enemies near it", number, "enemies"),
                              ("health 8 s before", percent, "health_before"),
                              ("way to the enemy's fountain", percent, "advance")):
        line(label, text, ours[name], theirs[name])


def _print_casts(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    """Print two contestants' casts (`five.evaluation.casts.CastRecorder.summarise`) beside each other."""
    def lines(label: str, own: Mapping[str, float], other: Mapping[str, float]) -> None:
        print(label)
        for name in sorted({*own, *other}):
            print(f"  {name:28s} {own.get(name, 0.0):9.1f}   opponent {other.get(name, 0.0):9.1f}")

    for hero in sorted({*ours["abilities"], *theirs["abilities"]}):
        lines(f"casts of {hero} a game", ours["abilities"].get(hero, {}), theirs["abilities"].get(hero, {}))
    lines("items used by a hero a game", ours["items"], theirs["items"])


def _on_evaluator(folder: RunFolder, cluster: ClusterInfo, version: int, against: str, games: int, seed: int
                  ) -> dict[str, Any]:
    config = load_stored(folder.path / "cluster.yaml")

    async def play() -> MatchResult:
        client = EvaluatorClient([cluster.evaluator], config.rpc, config.name, folder.cli_secret())
        try:
            return await client.play_match(version, against, games, seed, replay=True)
        finally:
            await client.close()

    result = asyncio.run(play())
    return {
        "version": result.version, "against": against, "games": games, "won": result.won, "lost": result.lost,
        "drawn": result.drawn, "win_rate_interval": list(wilson_interval(result.won + 0.5 * result.drawn, games)),
        "mean_game_seconds": result.mean_game_seconds, "statistics": result.statistics,
        "opponent_statistics": result.opponent_statistics, "replay": result.replay_path}


def _offline(folder: RunFolder, version: int, against: str, games: int, seed: int, greedy: bool,
             details: Details, temperature: float) -> dict[str, Any]:
    """Play the match from archived versions. Games come in pairs with sides swapped, so an odd number is rounded up."""
    from five.evaluation.archived_versions import ArchivedVersions
    from five.evaluation.match import Contestant

    archive = ArchivedVersions(folder)
    opponent = _opponent(against, archive.config.game, archive)
    number, policy, _ = archive.load(version, temperature)
    path = folder.path / "replays" / f"version-{number}-{opponent.name}-{seed}.replay"
    return {"version": number, **_play(archive.config.game, Contestant(f"version-{number}", policy), opponent, games,
                                       seed, greedy, path, details), "against": against}


def _opponent(against: str, game: GameConfig, archive: "ArchivedVersions | None" = None) -> "Contestant":
    """Return a bot, a version of the archive, or a packed agent that is brought over to the game.

    Raises ConfigError for an unknown opponent, VersionNotArchived, AgentUnavailable.
    """
    from dota.vec_game import BOTS
    from five.evaluation.match import Contestant
    from five.packed_agents.errors import AgentUnavailable
    from five.packed_agents.folder import find_agent

    if against in BOTS:
        return Contestant.bot(against)
    if archive is not None and against.isdigit():
        return Contestant(f"version-{against}", archive.load(int(against))[1])
    try:
        agent = find_agent(against)
    except AgentUnavailable as error:
        kinds = "one of" if archive is None else "a version's number, one of"
        raise ConfigError(f"--against {against!r}: expected {kinds} {', '.join(BOTS)}, or a packed agent ({error})"
                          ) from None
    if heroes := agent.untrained_heroes(game):
        print(f"agent {agent.card.name!r} has never played {', '.join(heroes)}", file=sys.stderr)
    return Contestant(agent.card.name, agent.policy(game))


def _play(game: GameConfig, first: "Contestant", second: "Contestant", games: int, seed: int, greedy: bool,
          path: Path | None, details: Details) -> dict[str, Any]:
    from five.evaluation.casts import CastRecorder
    from five.evaluation.deaths import DeathRecorder, summarise
    from five.evaluation.match import play

    saved = ""

    def record(replay: Replay, final: int) -> None:
        """Save a replay. An error must not cost the match."""
        nonlocal saved
        assert path is not None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replay.save(path, final)
            saved = str(path)
        except OSError as error:
            print(f"the replay is not saved: {path}: {error.strerror}", file=sys.stderr)

    deaths = DeathRecorder() if details.deaths else None
    casts = CastRecorder() if details.casts else None

    def on_step(games: "VecGame", slot: int, first_side: int) -> None:
        for recorder in (deaths, casts):
            if recorder is not None:
                recorder(games, slot, first_side)

    match = play(game, first, second, (games + 1) // 2, seed, greedy=greedy, on_step=on_step if any(details) else None,
                 record=None if path is None else record)
    won, drawn, lost = match.counts
    ours, theirs = match.statistics()
    return {"against": second.name, "games": len(match.games), "won": won, "lost": lost, "drawn": drawn,
            "win_rate_interval": list(match.interval()), "mean_game_seconds": match.seconds, "statistics": ours,
            "opponent_statistics": theirs, "replay": saved,
            **({} if deaths is None else {
                name: summarise([death for death in deaths.deaths if death.of_first == of_first], len(match.games),
                                game.heroes_per_team)
                for name, of_first in (("deaths", True), ("opponent_deaths", False))}),
            **({} if casts is None else {"casts": casts.summarise(True), "opponent_casts": casts.summarise(False)})}


def render_report(data: Path) -> int:
    """Render the page of a report's data (benchmarks/learning/*.json) beside it. Return the exit status.

    Raises RuntimeError for a file that holds no report, OSError.
    """
    target = data.with_suffix(".html")
    try:
        text = page(json.loads(data.read_text(encoding="utf-8")))
    except MALFORMED as error:
        raise RuntimeError(f"{data}: not the data of a report ({error})") from None
    replace_text(target, text)
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
    film = run_report.newest_film(RecordingReader(lambda: blobs, config.name))
    run_report.write(records, folder.report, film)
    save_record(RunState(client, config.name), folder.record)
    save_evidence(records.games.newest_first(), folder.evidence)
    print(folder.report)
    return 0
