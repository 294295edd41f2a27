"""`five surgery` against a served controller."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from five.agent.surgery import AgentSpec, Plan
from five.cli.main import main
from five.cli.surgery import describe, line_of, report_of, table
from five.local.run_folder import RunFolder
from five.run.load import load, rename, save
from five.services.controller.operations.document import EXAMPLE, Operation, OperationState, StepState
from five.services.controller.operations.store import OperationStore
from five.services.controller.surgery.rehearsals import RehearsalResult, Rehearsals, RehearsalState, RehearsalWorker
from rapid.store.state import RunState
from rapid.store.surgery_plans import PlanChecks
from tests.services.live_controller import OPERATOR, LiveController, live
from tests.services.optimizer_cases import GAME, MODEL

OLD = AgentSpec(GAME, MODEL)
WISH = ("--name", "wider", "--set", "model.lstm=16", "--set", "game.observation.pickups=2")


@pytest.fixture
def rest(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveController]:
    redis.Redis.from_url(redis_url).flushall()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FIVE_OPERATOR_TOKEN", OPERATOR)
    with live(redis_url, agent=OLD) as found:
        yield found


def five(rest: LiveController, verb: str, *arguments: str) -> int:
    return main(["surgery", verb, "--url", rest.url, *arguments])


@pytest.fixture
def run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of this machine that is not running."""
    monkeypatch.chdir(tmp_path)
    folder = RunFolder(Path("runs/trial"))
    folder.create()
    save(rename(load("laptop-1v1"), "trial"), folder.config)


@pytest.mark.parametrize("option", [["--dry-run"], ["--no-wait"], ["--json"], ["--reason", "a look"]])
def test_rehearsal_here_refuses_options_of_requests(option: list[str], run_folder: None,
                                                    capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["surgery", "rehearse", "wider.yaml", *option]) == 2
    assert f"{option[0]}: only with --ask or --url" in capsys.readouterr().err


def test_rehearsal_here_names_a_wrong_plan_file(run_folder: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["surgery", "rehearse", "wider.yaml"]) == 2
    assert capsys.readouterr().err == "five surgery: wider.yaml: No such file or directory\n"
    Path("wider.yaml").write_text("name: wider\n")
    assert main(["surgery", "rehearse", "wider.yaml"]) == 2
    assert capsys.readouterr().err.startswith("five surgery: wider.yaml: ")


def pass_check(state: RunState, plan: Plan) -> None:
    PlanChecks(state).put(plan.digest, {
        "plan": plan.to_yaml(), "name": plan.name, "parent": plan.parent, "epoch": 1, "bounds": {},
        "operation": "check-1", "who": "ada", "result": {"ok": True, "version": 3, "samples": 4, "report": {}}})


def test_surgery_plan_writes_and_prints_changes(rest: LiveController, capsys: pytest.CaptureFixture[str]) -> None:
    assert five(rest, "plan", *WISH, "--warm-up", "3", "--hold") == 0
    shown = capsys.readouterr().out
    plan = Plan.from_yaml(Path("wider.yaml").read_text())
    assert (plan.warm_up_versions, plan.hold) == (3, True)
    assert plan.digest in shown
    assert "grow_lstm" in shown
    assert f"{OLD.parameters:,} -> " in shown
    assert "five surgery check wider.yaml" in shown
    assert five(rest, "plan", "--name", "wider", "--set", "model.lstm=4") == 2
    assert "can only grow" in capsys.readouterr().err


def test_surgery_read_prints_an_edited_plan(rest: LiveController, capsys: pytest.CaptureFixture[str]) -> None:
    five(rest, "plan", *WISH)
    derived = capsys.readouterr().out
    assert five(rest, "read", "wider.yaml") == 0
    again = capsys.readouterr().out
    assert [line for line in derived.splitlines() if not line.startswith("written: ")] == again.splitlines()
    Path("wider.yaml").write_text(Path("wider.yaml").read_text().replace("grow_lstm", "grow_nothing"))
    assert five(rest, "read", "wider.yaml") == 2
    assert "grow_nothing" in capsys.readouterr().err


def test_surgery_apply_cancel_and_status(rest: LiveController, capsys: pytest.CaptureFixture[str]) -> None:
    five(rest, "plan", *WISH)
    assert five(rest, "apply", "wider.yaml", "--no-wait") == 2
    assert "POST /v1/surgery/check first" in capsys.readouterr().err
    pass_check(rest.state, Plan.from_yaml(Path("wider.yaml").read_text()))
    assert five(rest, "apply", "wider.yaml", "--dry-run") == 0
    assert "dry-run: surgery of plan 'wider'" in capsys.readouterr().out
    assert OperationStore(rest.state).all() == []
    assert five(rest, "status") == 2
    assert "no operations yet" in capsys.readouterr().err

    assert five(rest, "apply", "wider.yaml", "--hold", "--no-wait", "--reason", "more memory") == 0
    (operation,) = OperationStore(rest.state).all()
    assert (operation.who, operation.reason, operation.request.hold) == ("ada", "more memory", True)
    capsys.readouterr()
    assert five(rest, "status") == 0
    assert operation.id in capsys.readouterr().out
    assert five(rest, "continue") == 2
    assert "not reached its hold" in capsys.readouterr().err
    assert five(rest, "cancel", "--dry-run", "--json") == 0
    assert json.loads(capsys.readouterr().out)["cancel"]["who"] == "ada"
    assert five(rest, "log") == 0
    assert "no plan applied yet" in capsys.readouterr().out

    OperationStore(rest.state).change(operation.id, lambda o: o.model_copy(update={
        "state": OperationState.DONE, "outcome": "done"}))
    capsys.readouterr()
    assert five(rest, "cancel") == 2
    assert "no operation is in progress" in capsys.readouterr().err
    assert five(rest, "check", "nothing.yaml") == 2


def test_check_report_is_a_table_with_bounds() -> None:
    difference = {"max_logit_change": 0.00188, "max_value_change": "inf", "mean_kl": 6e-8, "mean_value_change": 2e-4}
    shown = report_of({
        "steps": [{"what": "grow lstm 8 to 16", "exact": False, "difference": difference, "holds": True},
                  {"what": "observe minimap", "exact": True, "difference": difference, "holds": False}],
        "difference": difference, "bounds": {"max_logit_change": None, "max_value_change": None, "mean_kl": 0.01,
                                             "mean_value_change": 0.05}}).splitlines()
    assert len(shown) == 5
    assert shown[1].split()[-6:] == ["approximate", "0.0019", "inf", "6e-08", "0.0002", "yes"]
    assert shown[2].endswith("NO")
    assert shown[4].split() == ["its", "bounds", "0.01", "0.05"]


def example(**changes: Any) -> dict[str, Any]:
    return dict(json.loads(Operation.model_validate(EXAMPLE).model_copy(update=changes).model_dump_json()))


def test_operation_text_names_what_it_waits_for() -> None:
    assert line_of(example()).endswith("pause, waiting for rollout/3")
    text = describe(example())
    assert "pause      going" in text
    assert "waiting for rollout/3" in text
    held = Operation.model_validate(EXAMPLE)
    for name in ("pause", "check", "checkpoint", "transform"):
        held = held.with_step(name, state=StepState.DONE, started_at=1.0, ended_at=3.5, waiting_for=())
    held = held.with_step("hold", state=StepState.GOING, attempt=1, started_at=1.0)
    shown = describe(json.loads(held.model_dump_json()))
    assert "2.5 s" in shown
    assert "`five surgery continue` publishes" in shown
    failed = example(state=OperationState.FAILED, outcome="transform: no room; nothing was published")
    assert describe(failed).endswith("nothing was published")
    assert table([]) == "no changes"


def test_rehearsals_are_requested_listed_and_cancelled(rest: LiveController, capsys: pytest.CaptureFixture[str]
                                                       ) -> None:
    assert five(rest, "plan", *WISH) == 0
    capsys.readouterr()
    assert five(rest, "rehearse", "wider.yaml") == 2
    assert "five surgery rehearse wider.yaml --versions 10 --games 100" in capsys.readouterr().err
    kept = Rehearsals(rest.state)
    kept.announce(RehearsalWorker(host="workstation", pid=4711))
    assert five(rest, "rehearse", "wider.yaml", "--games", "1") == 2 and "games" in capsys.readouterr().err
    assert five(rest, "rehearsals", "--cancel") == 2 and "no rehearsal is in progress" in capsys.readouterr().err
    assert five(rest, "rehearse", "wider.yaml", "--versions", "4", "--no-wait") == 0
    assert "requested by ada, waiting" in capsys.readouterr().out
    (asked,) = kept.all()
    assert asked.scope.versions == 4
    assert five(rest, "rehearsals", "--cancel", "--reason", "enough") == 0
    assert "cancelled" in capsys.readouterr().out
    worse = RehearsalResult(won=1, drawn=0, lost=9, score=0.1, low=0.02, high=0.3, worse=True)
    kept.change(asked.id, lambda r: r.model_copy(update={"state": RehearsalState.DONE, "result": worse}))
    assert five(rest, "rehearsals") == 0
    assert "won 1, drawn 0, lost 9; score 10 % (2 to 30 %, 95 % confidence), WORSE" in capsys.readouterr().out
    assert five(rest, "rehearsals", asked.id, "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["id"] == asked.id
