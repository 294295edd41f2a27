"""Commands that are one REST call each: their arguments, requests and output."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from five.cli.columns import align
from five.cli.run_selection import add_address, controller_of
from five.local.rest_client import ControllerClient

SERIES = ("versions", "games", "ratings", "matches")
SCHEDULES = ("learning_rate", "entropy_coefficient", "team_spirit", "gae_horizon_seconds", "scripted_fraction",
             "scripted_bot", "game_seconds", "middle_fraction", "building_health")
Arguments = argparse.Namespace


@dataclass(frozen=True)
class Command:
    """A command of `five`: its name, help, arguments and action."""

    name: str
    words: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[ControllerClient, Arguments], None]


def add_commands(commands: Any) -> None:
    """Add every command to the subparsers of `five`."""
    for command in COMMANDS:
        parser = commands.add_parser(command.name, help=command.words)
        command.arguments(parser)
        _add_common_options(parser)
        for verb in _verbs(parser):
            verb.argument_default = argparse.SUPPRESS  # otherwise its defaults replace options before the verb
            _add_common_options(verb)


def _verbs(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    below = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    return [child for action in below for child in action.choices.values()]


def run(arguments: Arguments) -> int:
    """Run one of the commands. Return the exit status. Raises ApiError, RunUnavailable."""
    command = next(c for c in COMMANDS if c.name == arguments.command)
    command.run(controller_of(arguments), arguments)
    return 0


# Printing.


def show(arguments: Arguments, value: Any, columns: Sequence[str] = ()) -> None:
    """Print a response: items as a table of ``columns``, anything else as JSON."""
    rows = value["items"] if isinstance(value, dict) and "items" in value else value
    if arguments.json or not columns or not isinstance(rows, list):
        print(json.dumps(value, indent=2))
        return
    cells = [[_format_cell(name, row.get(name)) for name in columns] for row in rows]
    print(align([columns, *cells]))
    for key in ("older", "next"):
        if isinstance(value, dict) and value.get(key) is not None:
            print(f"more: {'--before' if key == 'older' else '--offset'} {value[key]}")


def _format_cell(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name == "at" or name.endswith("_at"):
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(value))
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict | list):
        return json.dumps(value, separators=(",", ":"))[:120]
    return str(value)


# Arguments.


def _add_common_options(parser: argparse.ArgumentParser) -> None:
    add_address(parser)
    parser.add_argument("--json", action="store_true", help="print the response as JSON")


def _no_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def _add_reason(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reason", default="", help="reason, stored with the event")


def _dry_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="report what would happen, without doing it")


def _change(parser: argparse.ArgumentParser) -> None:
    _add_reason(parser)
    _dry_run(parser)


def _dry_run_query(arguments: Arguments) -> dict[str, Any]:
    return {"dry_run": "true"} if arguments.dry_run else {}


def _add_limit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", type=int, default=20, help="largest number of items (20)")


def _cursors(parser: argparse.ArgumentParser) -> None:
    _add_limit(parser)
    parser.add_argument("--after", help="items after this id, oldest first")
    parser.add_argument("--before", help="items before this id, newest first")


def _versions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("number", nargs="?", type=int, help="one version with its metadata")
    _cursors(parser)


def _events(parser: argparse.ArgumentParser) -> None:
    _cursors(parser)
    parser.add_argument("--follow", action="store_true", help="print new events until Ctrl-C")


def _config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", nargs="?", help="describe a key or list a section, e.g. learning.batch_samples; "
                        "needs no run")


def _series(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=SERIES)
    _cursors(parser)


def _add_paging(parser: argparse.ArgumentParser) -> None:
    _add_limit(parser)
    parser.add_argument("--offset", type=int, default=0, help="number of items to skip")


def _add_live_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("game", nargs="?", help="save this game until it ends")
    parser.add_argument("--out", help="output file (GAME.view)")


def _recordings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="save this recording")
    parser.add_argument("--out", help="output file (NAME.view)")


def _schedules(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    one = verbs.add_parser("show", help="print one schedule and its current value")
    one.add_argument("name", choices=SCHEDULES)
    change = verbs.add_parser("set", help="change a value from a version on")
    change.add_argument("name", choices=SCHEDULES)
    change.add_argument("to", type=float, help="value after the change")
    change.add_argument("--over", type=int, default=0, metavar="LENGTH", help="length of the change in the "
                        "schedule's unit, versions or hero-steps (0: at once)")
    change.add_argument("--start", type=int, metavar="START", help="start of the change in that unit (by default two "
                        "versions ahead)")
    _change(change)
    history = verbs.add_parser("history", help="list the changes, newest first")
    _add_limit(history)
    history.add_argument("--before", help="changes before this id")
    back = verbs.add_parser("revert", help="revert the newest change of a schedule")
    back.add_argument("change", help="id of the change; `five schedules history` lists them")
    back.add_argument("--start", type=int, metavar="START", help="start of the revert in the schedule's unit (by "
                      "default two versions ahead)")
    _change(back)


def _matches(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    _add_paging(parser)
    play = verbs.add_parser("play", help="request a match from the evaluator")
    play.add_argument("--version", type=int, default=-1, help="version to play (by default the newest)")
    play.add_argument("--against", default="scripted", help="opponent: random, scripted-easy, scripted, "
                      "scripted-hard, or a version")
    play.add_argument("--games", type=int, default=20, help="games to play")
    play.add_argument("--seed", type=int, default=0, help="seed of the games")
    play.add_argument("--replay", action="store_true", help="record the first game")
    _dry_run(play)
    for name, words in (("show", "print the state of a match"), ("cancel", "cancel a match")):
        one = verbs.add_parser(name, help=words)
        one.add_argument("id", help="id of the match; `five matches` lists them")
        if name == "cancel":
            _dry_run(one)


# Actions.


def _status(controller: ControllerClient, arguments: Arguments) -> None:
    answer = controller.get("status")
    show(arguments, answer)
    if answer.get("stalled_seconds"):
        print(f"five: {answer['status']}, no progress for {answer['stalled_seconds']:.0f} s: `five services` shows "
              "which services are live and what they do", file=sys.stderr)


def _control(controller: ControllerClient, arguments: Arguments) -> None:
    answer = controller.post(arguments.command, {"reason": arguments.reason}, **_dry_run_query(arguments))
    if arguments.json:
        show(arguments, answer)
    else:
        print(f"{'would be ' if arguments.dry_run else ''}{answer['status']} (requested by {answer['who']})")


def _show_versions(controller: ControllerClient, arguments: Arguments) -> None:
    if arguments.number is not None:
        show(arguments, controller.get(f"versions/{arguments.number}"))
        return
    found = controller.get("versions", limit=arguments.limit, after=arguments.after, before=arguments.before)
    show(arguments, found, ("version", "created_at", "bytes", "digest"))


def _show_services(controller: ControllerClient, arguments: Arguments) -> None:
    show(arguments, controller.get("services"), ("kind", "id", "address", "beaten_at", "stats"))


def _show_events(controller: ControllerClient, arguments: Arguments) -> None:
    columns = ("id", "at", "who", "what", "details")
    if not arguments.follow:
        show(arguments, controller.get("events", limit=arguments.limit, after=arguments.after,
                                       before=arguments.before), columns)
        return
    for kind, data in controller.follow():
        if arguments.json:
            print(json.dumps({"kind": kind, "data": data}))
        elif kind == "event":
            print("  ".join(_format_cell(name, data[name]) for name in columns[1:]))
        elif kind == "version":
            print(f"{_format_cell('at', data['at'])}  version {data['values'].get('version')}")
        elif data is not None:
            print(f"{_format_cell('at', data['since'])}  {data['status']} ({data['who']}) {data['reason']}")


def _show_series(controller: ControllerClient, arguments: Arguments) -> None:
    found = controller.get(f"series/{arguments.kind}", limit=arguments.limit, after=arguments.after,
                           before=arguments.before)
    show(arguments, found, ("id", "at", "values"))


def _show_page(*columns: str) -> Callable[[ControllerClient, Arguments], None]:
    def run(controller: ControllerClient, arguments: Arguments) -> None:
        show(arguments, controller.get(arguments.command, limit=arguments.limit, after=arguments.after,
                                       before=arguments.before), columns)

    return run


def _show_slice(*columns: str) -> Callable[[ControllerClient, Arguments], None]:
    def run(controller: ControllerClient, arguments: Arguments) -> None:
        show(arguments, controller.get(arguments.command, limit=arguments.limit, offset=arguments.offset), columns)

    return run


def _run_schedules(controller: ControllerClient, arguments: Arguments) -> None:
    match arguments.verb:
        case None:
            show(arguments, controller.get("schedules"))
        case "show":
            show(arguments, controller.get(f"schedules/{arguments.name}"))
        case "history":
            show(arguments, controller.get("schedules/history", limit=arguments.limit, before=arguments.before),
                 ("id", "at", "who", "name", "reason", "after"))
        case "set":
            path = f"schedules/{arguments.name}"
            seen = controller.document(path)
            show(arguments, controller.put(path, {
                "start": seen.value["next_start"] if arguments.start is None else arguments.start,
                "length": arguments.over, "to": arguments.to, "reason": arguments.reason}, seen.tag,
                **_dry_run_query(arguments)))
        case _:
            show(arguments, controller.post(f"schedules/history/{arguments.change}/revert", {
                "start": arguments.start, "reason": arguments.reason}, **_dry_run_query(arguments)))


def _run_matches(controller: ControllerClient, arguments: Arguments) -> None:
    match arguments.verb:
        case None:
            found = controller.get("matches", limit=arguments.limit, offset=arguments.offset)
            show(arguments, found, ("id", "state", "who", "asked_at", "request", "error"))
        case "play":
            request = {key: getattr(arguments, key) for key in ("version", "against", "games", "seed", "replay")}
            show(arguments, controller.post("matches", request, **_dry_run_query(arguments)))
        case "show":
            show(arguments, controller.get(f"matches/{arguments.id}"))
        case _:
            show(arguments, controller.post(f"matches/{arguments.id}/cancel", {}, **_dry_run_query(arguments)))


def _show_live(controller: ControllerClient, arguments: Arguments) -> None:
    if arguments.game is not None:
        save(controller, f"games/{arguments.game}/live", arguments.game, arguments)
        return
    show(arguments, controller.get("games")["games"],
         ("game", "kind", "players", "time", "kills", "net_worth", "source", "watched"))


def _show_recordings(controller: ControllerClient, arguments: Arguments) -> None:
    if arguments.name is not None:
        save(controller, f"replays/{arguments.name}", arguments.name, arguments)
        return
    show(arguments, controller.get("replays")["replays"], ("name", "bytes", "facts"))


def save(controller: ControllerClient, path: str, name: str, arguments: Arguments) -> None:
    """Write GET /v1/<path> to the file of --out, by default NAME.view, and print its size."""
    file = Path(arguments.out or f"{name}.view")
    written = controller.save(path, file)
    print(json.dumps({"file": str(file), "bytes": written}) if arguments.json else f"{file}: {written} bytes")


def _show_config(controller: ControllerClient, arguments: Arguments) -> None:
    show(arguments, controller.get("config"))


COMMANDS: tuple[Command, ...] = (
    Command("status", "print the status of a run", _no_arguments, _status),
    Command("pause", "pause games and learning", _change, _control),
    Command("resume", "resume a paused run, or start a stopped run of a cluster again", _change, _control),
    Command("stop", "stop a run; it can be resumed", _change, _control),
    Command("versions", "list the published versions", _versions, _show_versions),
    Command("services", "list the live service instances", _no_arguments, _show_services),
    Command("events", "list the run's events", _events, _show_events),
    Command("series", "print records of a time series", _series, _show_series),
    Command("schedules", "print or change scheduled hyperparameters", _schedules, _run_schedules),
    Command("opponents", "list the pool of past versions", _add_paging,
            _show_slice("version", "quality", "games", "wins")),
    Command("ratings", "list the TrueSkill ratings of versions", _cursors,
            _show_page("player", "mu", "sigma", "games", "aborted", "reference")),
    Command("matches", "list, request or cancel matches", _matches, _run_matches),
    Command("live", "list the live games; with GAME save one", _add_live_arguments, _show_live),
    Command("recordings", "list the recorded games; with NAME save one (docs/replays.md)", _recordings,
            _show_recordings),
    Command("config", "print the run's configuration; with KEY describe a key", _config, _show_config),
)
NAMES = frozenset(command.name for command in COMMANDS)
