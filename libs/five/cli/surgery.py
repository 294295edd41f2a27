"""`five surgery`: plan, check, rehearse and apply a change of a running agent."""

import argparse
import json
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from five.cli import numbers
from five.cli.columns import align
from five.cli.run_selection import add_address
from five.local.rest_client import ApiError, ControllerClient
from rapid.atomic_file import replace_text

if TYPE_CHECKING:
    from five.services.controller.surgery.rehearsals import RehearsalScope

POLL_SECONDS = 1.0
RETRY_SECONDS = 120.0  # while the controller is unavailable
ENDED = ("done", "failed", "cancelled")  # states of an operation
ACTIVE = ("waiting", "preparing", "warming", "learning", "playing")  # states of a rehearsal
MEASURED = {"max_logit_change": "max |dlogit|", "max_value_change": "max |dvalue|", "mean_kl": "mean KL",
            "mean_value_change": "mean dvalue"}
_DIGEST = re.compile(r"[0-9a-f]{64}")


def add_arguments(surgery: argparse.ArgumentParser) -> None:
    """Add the verbs and their arguments."""
    verbs = surgery.add_subparsers(dest="verb", required=True, metavar="VERB")

    def verb(name: str, words: str) -> argparse.ArgumentParser:
        command = verbs.add_parser(name, help=words)
        add_address(command)
        command.add_argument("--json", action="store_true", help="print the answer as JSON")
        return command

    plan = verb("plan", "derive a plan from the new values of keys and print its changes")
    plan.add_argument("--name", required=True, help="name of the plan")
    plan.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides", required=True,
                      help="key of game or model with its new value, e.g. model.lstm=256; repeatable")
    plan.add_argument("--hold", action="store_true", help="wait for confirmation before publishing")
    plan.add_argument("--warm-up", type=int, metavar="VERSIONS", help="versions at learning rate 0 after the surgery")
    plan.add_argument("--out", metavar="FILE", help="file of the plan (default NAME.yaml)")

    verb("read", "print the changes of a plan file, e.g. after editing it").add_argument(
        "plan", metavar="FILE", help="plan file")
    check = verb("check", "measure a plan on the newest version, without changing the run")
    check.add_argument("plan", metavar="FILE", help="plan file")
    apply = verb("apply", "apply a checked plan")
    apply.add_argument("plan", metavar="PLAN", help="digest or file of the plan")
    apply.add_argument("--hold", action="store_true", default=None, help="wait for confirmation before publishing")
    for command in (check, apply):
        command.add_argument("--no-wait", action="store_true", help="do not wait; `five surgery status` shows the "
                             "progress")
    verb("status", "print the state of an operation and what it waits for").add_argument(
        "operation", nargs="?", help="id of the operation; by default the newest")
    verb("log", "list the applied plans with their checksums")
    for name, words in (("cancel", "cancel an operation before it publishes and restore the run"),
                        ("continue", "continue an operation that holds")):
        command = verb(name, words)
        command.add_argument("operation", nargs="?", help="id of the operation; by default the current one")
    for name in ("check", "apply", "cancel", "continue"):
        verbs.choices[name].add_argument("--reason", default="", help="reason, stored with the event")
        verbs.choices[name].add_argument("--dry-run", action="store_true", help="report what would happen, without "
                                         "doing it")

    rehearse = verb("rehearse", "try a plan on a fork of a local run and play the result against the previous version; "
                    "in this process, or with --ask or --url in that of `five train`")
    rehearse.add_argument("plan", metavar="FILE", help="plan file")
    rehearse.add_argument("--versions", type=numbers.games, default=10, help="versions to learn after the warm-up")
    rehearse.add_argument("--games", type=numbers.games, default=100,
                          help="games of the match, half of them on each side")
    rehearse.add_argument("--minutes", type=numbers.positive(), default=60.0, help="time limit")
    rehearse.add_argument("--ask", action="store_true", help="run it in the process of `five train`")
    rehearse.add_argument("--no-wait", action="store_true", help="do not wait; `five surgery rehearsals` shows the "
                          "progress")
    listed = verb("rehearsals", "list the rehearsals with their progress and results")
    listed.add_argument("rehearsal", nargs="?", help="id of one rehearsal")
    listed.add_argument("--cancel", action="store_true", help="cancel it; by default the current one")
    for command in (rehearse, listed):
        command.add_argument("--reason", default="", help="reason, stored with the event")
        command.add_argument("--dry-run", action="store_true", help="report what would happen, without doing it")


def scope_of(arguments: argparse.Namespace) -> "RehearsalScope":
    """Return the scope of a rehearsal. Raises ApiError."""
    from five.services.controller.surgery.rehearsals import RehearsalScope

    try:
        return RehearsalScope(versions=arguments.versions, games=arguments.games, minutes=arguments.minutes)
    except ValueError as error:
        raise ApiError(str(error)) from None


def require_rehearsal_here(arguments: argparse.Namespace) -> None:
    """Raise ApiError for options that a rehearsal in this process does not have."""
    for option in ("dry_run", "no_wait", "json", "reason"):
        if getattr(arguments, option):
            raise ApiError(f"--{option.replace('_', '-')}: only with --ask or --url, which rehearse in the process of "
                           "`five train`")


def run(arguments: argparse.Namespace, controller: ControllerClient) -> int:
    """Run a verb over REST. Return the exit status: 1 if a check, a rehearsal or an operation failed."""
    ask = Surgery(controller, arguments)
    return int(getattr(ask, "go_on" if arguments.verb == "continue" else arguments.verb)())


class Surgery:
    """Verbs of `five surgery` over REST."""

    def __init__(self, controller: ControllerClient, arguments: argparse.Namespace) -> None:
        self._rest = controller
        self._given = arguments

    def plan(self) -> int:
        """Write the plan and print its changes."""
        given = self._given
        request: dict[str, Any] = {"name": given.name, "overrides": given.overrides, "hold": given.hold}
        if given.warm_up is not None:
            request["warm_up_versions"] = given.warm_up
        planned = self._rest.post("surgery/plan", request)
        target = Path(given.out or f"{given.name}.yaml")
        replace_text(target, planned["plan"])
        self._show_plan(planned, f"written: {target}\nnext: five surgery check {target}")
        return 0

    def read(self) -> int:
        """Print the changes of a plan from a file."""
        self._show_plan(self._rest.post("surgery/read", {"plan": _text(self._given.plan)}),
                        f"next: five surgery check {self._given.plan}")
        return 0

    def _show_plan(self, planned: dict[str, Any], after: str) -> None:
        if self._given.json:
            print(json.dumps(planned, indent=2))
            return
        print(table(planned["changes"]))
        print(f"parameters: {planned['parameters_before']:,} -> {planned['parameters_after']:,}")
        for finding in planned["lint"]:
            where = f"step {finding['step']}: " if finding["step"] else ""
            print(f"{finding['level']}: {where}{finding['message']}")
        for anneal in planned["anneals"]:
            print(f"to be annealed over {anneal['versions']} versions after the plan is applied: {anneal['values']}")
        print(f"digest: {planned['digest']}\n{after}")

    def check(self) -> int:
        """Measure a plan and print the report."""
        body = {"plan": _text(self._given.plan), "reason": self._given.reason}
        operation = self._order("surgery/check", body)
        if self._given.dry_run or self._given.no_wait:
            return self._print_operation(operation)
        operation = self._follow(operation)
        if operation["state"] != "done":
            return self._print_operation(operation)
        result = self._rest.get(f"surgery/checks/{operation['request']['digest']}")
        if self._given.json:
            print(json.dumps(result, indent=2))
        else:
            found = result["result"]
            print(f"measured on version {found['version']} with {found['samples']} samples of its games:")
            print(report_of(found["report"]))
            print(f"{'within its bounds' if found['ok'] else 'OUTSIDE ITS BOUNDS: ' + found['why']}\n"
                  f"digest: {result['digest']}")
        return 0 if result["result"]["ok"] else 1

    def apply(self) -> int:
        """Apply a checked plan."""
        plan = self._given.plan
        digest = plan if _DIGEST.fullmatch(plan) else self._digest_of(plan)
        body: dict[str, Any] = {"digest": digest, "reason": self._given.reason}
        if self._given.hold is not None:
            body["hold"] = self._given.hold
        operation = self._order("surgery/apply", body)
        if self._given.dry_run or self._given.no_wait:
            return self._print_operation(operation)
        return self._print_operation(self._follow(operation, until_hold=True))

    def _digest_of(self, file: str) -> str:
        from five.agent.surgery import Plan

        try:
            return str(Plan.from_yaml(_text(file)).digest)
        except ValueError as error:
            raise ApiError(f"{file}: {error}") from None

    def rehearse(self) -> int:
        """Rehearse a plan in the process of `five train` and follow it."""
        rehearsal = self._order("surgery/rehearse", {
            "plan": _text(self._given.plan), "reason": self._given.reason, **scope_of(self._given).model_dump()})
        if not self._given.dry_run and not self._given.no_wait:
            rehearsal = self._follow_rehearsal(rehearsal)
        print(json.dumps(rehearsal, indent=2) if self._given.json else describe_rehearsal(rehearsal))
        result = rehearsal["result"]
        return 0 if rehearsal["state"] in ACTIVE or (result and not result["worse"]) else 1

    def _get_when_available(self, path: str, show: str) -> Any:
        """Wait a second and return GET ``path``. Retry for `RETRY_SECONDS` while the controller is unavailable; then
        raise ApiError that names ``show``, the command that prints the result later."""
        until = time.monotonic() + RETRY_SECONDS
        while True:
            time.sleep(POLL_SECONDS)
            try:
                return self._rest.get(path)
            except ApiError as error:
                if time.monotonic() > until:
                    raise ApiError(f"{error}\nThe controller continues without this command, and the result is unknown "
                                   f"here. Connect again (a `kubectl port-forward` may have ended), then: {show}"
                                   ) from None

    def _follow_rehearsal(self, rehearsal: Any) -> Any:
        last = ""
        while rehearsal["state"] in ACTIVE:
            line = describe_rehearsal(rehearsal)
            if line != last:
                print(line, file=sys.stderr)
                last = line
            rehearsal = self._get_when_available(f"surgery/rehearsals/{rehearsal['id']}",
                                                 f"five surgery rehearsals {rehearsal['id']}")
        return rehearsal

    def rehearsals(self) -> int:
        """Print rehearsals, or cancel one."""
        given = self._given
        if given.cancel:
            identity = given.rehearsal or next((r["id"] for r in self._rest.get("surgery/rehearsals")["items"]
                                                if r["state"] in ACTIVE), None)
            if identity is None:
                raise ApiError("no rehearsal is in progress")
            found = [self._order(f"surgery/rehearsals/{identity}/cancel", {"reason": given.reason})]
        elif given.rehearsal:
            found = [self._rest.get(f"surgery/rehearsals/{given.rehearsal}")]
        else:
            found = self._rest.get("surgery/rehearsals")["items"]
        if given.json:
            print(json.dumps(found, indent=2))
        else:
            print("\n".join(map(describe_rehearsal, found)) or "no rehearsals yet")
        return 0

    def status(self) -> int:
        """Print one operation."""
        return self._print_operation(self._find_operation(going=False))

    def log(self) -> int:
        """Print the applied plans with their checksums."""
        chain = self._rest.get("surgery/log", limit=1000)["items"]
        if self._given.json:
            print(json.dumps(chain, indent=2))
        elif not chain:
            print("no plan applied yet")
        else:
            print(table([{"number": row["number"], "plan": row["name"], "digest": row["digest"][:12],
                          "from": row["parent"], "to": row["schema"], "epoch": row["epoch"],
                          "version": row["version"], "by": row["who"],
                          "checksum": "holds" if row["holds"] else row["why"]} for row in chain]))
        return 0 if all(row["holds"] for row in chain) else 1

    def cancel(self) -> int:
        """Cancel an operation."""
        operation = self._request_step("cancel")
        return self._print_operation(operation if self._given.dry_run else self._follow(operation))

    def go_on(self) -> int:
        """Continue an operation that waits at its hold."""
        operation = self._request_step("continue")
        return self._print_operation(operation if self._given.dry_run else self._follow(operation))

    def _find_operation(self, going: bool) -> Any:
        if self._given.operation:
            return self._rest.get(f"operations/{self._given.operation}")
        found = self._rest.get("operations", limit=1)["items"]
        if not found or (going and found[0]["state"] in ENDED):
            raise ApiError("no operation is in progress" if going else "no operations yet")
        return found[0]

    def _order(self, path: str, body: dict[str, Any], patience: float = 0.0) -> Any:
        return self._rest.post(path, body, patience=patience, **({"dry_run": "true"} if self._given.dry_run else {}))

    def _request_step(self, verb: str) -> Any:
        """Order the next step of an operation. The controller may restart between carrying it out and the response, so
        it is sent again under one idempotency key."""
        operation = self._find_operation(going=True)
        return self._order(f"operations/{operation['id']}/{verb}", {"reason": self._given.reason}, RETRY_SECONDS)

    def _follow(self, operation: Any, until_hold: bool = False) -> Any:
        """Print each change of an operation until it ends or holds. The controller may be unavailable at the cut-over,
        when it restarts."""
        last = ""
        while operation["state"] not in ENDED:
            line = line_of(operation)
            if line != last:
                print(line, file=sys.stderr)
                last = line
            step = current(operation)
            if until_hold and step is not None and step["name"] == "hold" and step["state"] == "going" \
                    and operation["request"]["hold"] and operation["go_on"] is None:
                return operation
            operation = self._get_when_available(f"operations/{operation['id']}",
                                                 f"five surgery status {operation['id']}")
        return operation

    def _print_operation(self, operation: Any) -> int:
        print(json.dumps(operation, indent=2) if self._given.json else describe(operation))
        return 0 if operation["state"] in ("done", "going") or (
            self._given.verb == "cancel" and operation["state"] == "cancelled") else 1


def current(operation: Any) -> Any:
    """Return the step that an operation is at; None at its end."""
    return next((s for s in operation["steps"] if s["state"] in ("waiting", "going")), None)


def line_of(operation: Any) -> str:
    """Return an operation as one line."""
    step = current(operation)
    if operation["state"] == "rolling_back":
        return f"{operation['id']}: restoring the run ({operation['outcome']})"
    if step is None:
        return f"{operation['id']}: {operation['state']}"
    waiting = f", waiting for {', '.join(step['waiting_for'])}" if step["waiting_for"] else ""
    again = f", attempt {step['attempt']} ({step['error']})" if step["attempt"] > 1 else ""
    return f"{operation['id']}: {step['name']}{again}{waiting}"


def describe(operation: Any) -> str:
    """Return an operation as a few lines."""
    lines = [f"{operation['id']}: {operation['kind']} of plan {operation['request']['name']!r}, requested by "
             f"{operation['who']}, {operation['state']}"]
    for step in operation["steps"]:
        took = f" {step['ended_at'] - step['started_at']:6.1f} s" if step["ended_at"] and step["started_at"] else ""
        more = [f"attempt {step['attempt']}"] if step["attempt"] > 1 else []
        more += [step["error"]] if step["error"] else []
        more += [f"waiting for {', '.join(step['waiting_for'])}"] if step["waiting_for"] else []
        lines.append(f"  {step['name']:10s} {step['state']:8s}{took}  {'; '.join(more)}".rstrip())
    step = current(operation)
    if operation["state"] == "going" and step is not None and step["name"] == "hold" and step["state"] == "going":
        lines.append("on hold: `five surgery continue` publishes, `five surgery cancel` restores the run")
    if operation["outcome"]:
        lines.append(operation["outcome"])
    return "\n".join(lines)


def describe_rehearsal(rehearsal: Any) -> str:
    """Return a rehearsal as one line."""
    r, scope = rehearsal, rehearsal["scope"]
    where = {"warming": lambda: f", version {r['version']} of {r['warm']}",
             "learning": lambda: f", version {r['version'] - r['warm']} of {scope['versions']}",
             "playing": lambda: f", {r['played']} of {scope['games'] + scope['games'] % 2} games"}
    text = f"{r['id']}: plan {r['name']!r} ({r['digest'][:12]}), requested by {r['who']}, {r['state']}"
    text += where.get(r["state"], lambda: "")()
    if r["result"]:
        found = r["result"]
        score, low, high = (100 * found[key] for key in ("score", "low", "high"))
        text += (f": won {found['won']}, drawn {found['drawn']}, lost {found['lost']}; score {score:.0f} % "
                 f"({low:.0f} to {high:.0f} %, 95 % confidence){', WORSE than before' if found['worse'] else ''}")
    if r["cancel"] and r["state"] in ACTIVE:
        text += f", cancelled by {r['cancel']['who']}"
    return f"{text}{': ' + r['error'] if r['error'] else ''}"


def report_of(report: dict[str, Any]) -> str:
    """Return a check's report: promised and measured changes of each step, and of the whole plan against its bounds."""
    def measured(difference: dict[str, Any]) -> dict[str, str]:
        return {words: f"{float(difference[key]):.2g}" for key, words in MEASURED.items()}

    rows = [{"step": s["what"], "promise": "exact" if s["exact"] else "approximate", **measured(s["difference"]),
             "holds": "yes" if s["holds"] else "NO"} for s in report["steps"]]
    bounds = {words: report["bounds"][key] for key, words in MEASURED.items()}
    rows.append({"step": "the whole plan", "promise": "", **measured(report["difference"]), "holds": ""})
    rows.append({"step": "its bounds", "promise": "",
                 **{words: "" if bound is None else f"{bound:g}" for words, bound in bounds.items()}, "holds": ""})
    return table(rows)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return rows of the same keys as aligned columns."""
    if not rows:
        return "no changes"
    keys = list(rows[0])
    texts = [keys, *([f"{row[k]:,}" if isinstance(row[k], int) else str(row[k]) for k in keys] for row in rows)]
    return align(texts)


def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ApiError(f"{file}: {error}") from None
