"""`five anneal` and `five revert`: anneal a change of the game, or return to an older version."""

import argparse
import json
from typing import Any

import yaml

from five import yaml_core
from five.cli.run_selection import add_address, confirm
from five.local.rest_client import ApiError, ControllerClient
from five.run.load import value_of

VERBS = ("hold", "resume", "promote", "abort", "revert")
_WORDS = {
    "hold": "keep the share constant until it is resumed",
    "resume": "let the share grow again",
    "promote": "apply the change to all games, whatever the guard's verdict",
    "abort": "remove the change from all games and keep the weights",
    "revert": "remove the change from all games and return the run to the version before it",
}


def add_arguments(commands: Any) -> None:
    """Add both commands to the subparsers of `five`."""
    anneal = commands.add_parser("anneal", help="introduce a change of the game over versions, under a guard")
    verbs = anneal.add_subparsers(dest="verb", required=True, metavar="VERB")

    def verb(name: str, words: str) -> argparse.ArgumentParser:
        command: argparse.ArgumentParser = verbs.add_parser(name, help=words)
        add_address(command)
        command.add_argument("--json", action="store_true", help="print the answer as JSON")
        if name != "status":
            command.add_argument("--dry-run", action="store_true", help="report what would happen, without doing it")
        return command

    start = verb("start", "start an anneal")
    start.add_argument("--name", required=True, help="name of the change")
    start.add_argument("--set", action="append", default=[], dest="overrides", metavar="KEY=VALUE", required=True,
                       help="key of the game with its new value, e.g. game.patch=7.21d; repeatable")
    start.add_argument("--versions", type=int, required=True, help="number of versions from 0 to 100%% of games")
    start.add_argument("--guard", action="append", default=[], metavar="KEY=VALUE",
                       help="setting of the guard's test: false_alarm, loss, miss, pairs")
    start.add_argument("--policy", action="append", default=[], metavar="KEY=VALUE",
                       help="reaction to its verdicts: on_fail, slower, tries, gates")
    start.add_argument("--reason", default="", help="reason, stored with the operation")
    verb("status", "print the share, the guard's evidence and verdict, and its error rates")
    share = verb("share", "set the share of games and hold it")
    share.add_argument("share", type=float, help="share of games that have the change, 0 to 1")
    for name in VERBS:
        command = verb(name, _WORDS[name])
        if name == "revert":
            command.add_argument("--reason", default="", help="reason, stored with the operation")

    revert = commands.add_parser("revert", help="return to an older version; later versions stay as a branch")
    add_address(revert)
    revert.add_argument("--json", action="store_true", help="print the answer as JSON")
    what = revert.add_mutually_exclusive_group(required=True)
    what.add_argument("--to", type=int, metavar="VERSION", help="version to return to")
    what.add_argument("--targets", action="store_true", help="list the versions that a revert can return to")
    what.add_argument("--branches", action="store_true", help="list the branches left by reverts")
    revert.add_argument("--warm-up", type=int, default=0, metavar="VERSIONS",
                        help="versions at learning rate 0 after the revert")
    revert.add_argument("--reason", default="", help="reason, stored with the operation")
    revert.add_argument("--dry-run", action="store_true", help="list what would be undone, without doing it")
    revert.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def tree_of(given: list[str], below: str = "") -> dict[str, Any]:
    """Return ``a.b=value`` texts as a tree of YAML values.

    ``below``: the configuration's section of the keys; keys may begin with it, and values are parsed as the
    section's keys require. Raises ApiError.
    """
    tree: dict[str, Any] = {}
    for text in given:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise ApiError(f"{text!r}: expected KEY=VALUE")
        *sections, last = key.removeprefix(f"{below}.").split(".")
        at = tree
        for section in sections:
            at = at.setdefault(section, {})
            if not isinstance(at, dict):
                raise ApiError(f"{text!r}: {section} already has a value")
        try:
            at[last] = value_of([below, *sections, last], value) if below else yaml_core.load(value)
        except yaml.YAMLError as error:
            raise ApiError(f"{text!r}: {error}") from None
    return tree


def run(arguments: argparse.Namespace, controller: ControllerClient) -> int:
    """Run one of the commands. Return the exit status. Raises ApiError."""
    return (_anneal if arguments.command == "anneal" else _revert)(arguments, controller)


def _dry_run_query(arguments: argparse.Namespace) -> dict[str, Any]:
    return {"dry_run": "true"} if arguments.dry_run else {}


def _anneal(arguments: argparse.Namespace, controller: ControllerClient) -> int:
    match arguments.verb:
        case "status":
            return _print_anneal(arguments, controller.get("anneal"))
        case "start":
            operation = controller.post("anneal", {
                "name": arguments.name, "overrides": tree_of(arguments.overrides, "game"),
                "versions": arguments.versions, "guard": tree_of(arguments.guard), "policy": tree_of(arguments.policy),
                "reason": arguments.reason}, **_dry_run_query(arguments))
            return _operation(arguments, operation)
        case "share":
            return _print_anneal(arguments, controller.put("anneal/share", {"share": arguments.share},
                                                           **_dry_run_query(arguments)))
        case verb:
            body = {"reason": arguments.reason} if verb == "revert" else {}
            return _print_anneal(arguments, controller.post(f"anneal/{verb}", body, **_dry_run_query(arguments)))


def _print_anneal(arguments: argparse.Namespace, now: Any) -> int:
    """Print an anneal. Return 1 if the guard failed it."""
    if arguments.json:
        print(json.dumps(now, indent=2))
    else:
        anneal, power = now["anneal"], now["guard_power"]
        print(f"{anneal['id']}, try {anneal['attempt']}: {anneal['state']} at {100 * now['share']:.1f}% of games, "
              f"version {now['version']} (base version {anneal['base']})")
        print(f"changes {json.dumps(anneal['overrides'])}")
        if anneal["reason"]:
            print(anneal["reason"])
        print(f"guard: {now['verdict']}; {now['reason']}")
        for rule in now["findings"]:
            print(f"  {rule['rule']:>3} rule: {rule['pairs']} pairs, mean result {rule['mean']:+.3f}; evidence of harm "
                  f"{rule['harm']:.3g} of {rule['fails_at']:.3g}, of no harm {rule['harmless']:.3g} of "
                  f"{rule['passes_at']:.3g}")
        print(f"  false alarms at most {100 * power['false_alarm']:g}%; a loss of {power['loss']:g} is caught in "
              f"{100 * min(power['caught'].values()):.0f}% of attempts or more, after "
              f"{max(power['pairs_to_catch'].values())} pairs or fewer in the median")
    return int(now["anneal"]["state"] == "failed")


def _operation(arguments: argparse.Namespace, operation: Any) -> int:
    if arguments.json:
        print(json.dumps(operation, indent=2))
    elif arguments.dry_run:
        print("steps: " + ", ".join(step["name"] for step in operation["steps"]))
    else:
        print(f"operation {operation['id']} started; `five surgery status {operation['id']}` shows it")
    return 0


def _revert(arguments: argparse.Namespace, controller: ControllerClient) -> int:
    if arguments.targets or arguments.branches:
        found = controller.get("revert/targets" if arguments.targets else "branches", limit=1000)
        if arguments.json:
            print(json.dumps(found, indent=2))
            return 0
        for row in found["items"]:
            print(_target(row) if arguments.targets else
                  f"versions {row['first']} to {row['last']}, left by {row['who']} ({row['left_by']}): version "
                  f"{row['continued_as']} continues from {row['went_back_to']}")
        return 0
    undone = controller.get(f"revert/{arguments.to}")
    if arguments.dry_run and arguments.json:
        print(json.dumps(undone, indent=2))
        return 0
    if not arguments.json:
        print(_format_undone(undone))
    if arguments.dry_run:
        return 0
    if arguments.json and not arguments.yes:
        raise ApiError("revert? --json asks no question; nothing was changed: --yes confirms")
    if not arguments.yes and not confirm("revert?"):
        print("nothing changed")
        return 1
    return _operation(arguments, controller.post("revert", {
        "to": arguments.to, "warm_up_versions": arguments.warm_up, "reason": arguments.reason}))


def _target(row: Any) -> str:
    moments = "with Adam moments" if row["complete"] else "parameters only"
    branch = "" if row["line"] else "  (on a branch left by a revert)"
    return f"{row['version']:>9}  epoch {row['epoch']}  {moments}{branch}"


def _format_undone(undone: Any) -> str:
    """Return the effects of a revert as text."""
    lines = [f"revert from version {undone['head']} to {undone['to_version']}, "
             + ("with Adam moments" if undone["complete"] else "parameters only: Adam moments start at zero")]
    for run in undone["versions"]:
        lines.append(f"  versions {run['first']} to {run['last']}")
    lines += [f"  surgery {row['name']!r} ({row['digest'][:12]})" for row in undone["surgeries"]]
    lines += [f"  {line}" for line in undone["record"]]
    lines += [f"  schedule {row['name']}, changed by {row['who']}" for row in undone["schedules"]]
    for key, words in (("opponents", "leave the opponent pool"), ("references", "stop being references"),
                       ("ratings", "keep their ratings")):
        if undone[key]:
            shown = ", ".join(map(str, undone[key][:10]))
            lines.append(f"  versions {shown}{', ...' if len(undone[key]) > 10 else ''} {words}")
    if undone["anneal"]:
        lines.append(f"  anneal {undone['anneal']} ends")
    return "\n".join(lines)
