"""Surgery on a real `five train`: over REST during games, failing at each step, killed at each step."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.optimizer_faults import inject_faults
from tests.e2e.running import KINDS, Run, eventually

# The LSTM doubles, pickups are seen, and the glyph goes from the script to the policy.
WISH = ["model.lstm=32", "game.observation.pickups=2", "game.scripted_actions=[shrine]"]
SCRIPTED = "game.scripted_actions=[glyph, shrine]"
SERVICES = [name for name in KINDS if not name.startswith("redis")]
STEPS = ("pause", "check", "checkpoint", "transform", "hold", "publish", "renew", "warm_up", "run")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    inject_faults(monkeypatch, tmp_path / "faults")
    run = Run(tmp_path)
    yield run
    run.destroy()


def faults(run: Run, text: str) -> None:
    (run.place / "faults").write_text(text)


def operation(run: Run, identity: str) -> dict[str, Any]:
    answer = run.rest("GET", f"operations/{identity}")
    answer.raise_for_status()
    return dict(answer.json())


def ended(run: Run, identity: str, seconds: float = 480.0) -> dict[str, Any]:
    """Return the operation once it is over."""
    def over() -> dict[str, Any] | None:
        run.check()
        found = operation(run, identity)
        return found if found["state"] in ("done", "failed", "cancelled") else None

    try:
        found = eventually(over, seconds, f"{identity} is over")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{json.dumps(operation(run, identity), indent=1)}\n{run.logs()}") from None
    assert found is not None
    return found


def at_step(run: Run, identity: str, step: str, seconds: float = 300.0) -> None:
    """Wait until the operation has begun a step."""
    def there() -> bool:
        found = operation(run, identity)
        assert found["state"] == "going", found
        return any(s["name"] == step and s["state"] in ("going", "done") for s in found["steps"])

    eventually(there, seconds, f"{identity} is at {step}")


def planned(run: Run, name: str = "wider", **changes: Any) -> dict[str, Any]:
    answer = run.rest("POST", "surgery/plan", json={
        "name": name, "overrides": WISH, "warm_up_versions": 2, **changes})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def loose(plan: str) -> str:
    """Return the plan with bounds that a policy of a few minutes meets; such a policy is almost uniform."""
    return plan + "bounds:\n  mean_kl: 0.5\n  mean_value_change: 5.0\n"


def checked(run: Run, plan: str) -> str:
    """Check a plan and return its digest."""
    answer = run.rest("POST", "surgery/check", json={"plan": plan})
    assert answer.status_code == 202, answer.text
    found = ended(run, answer.json()["id"])
    assert found["outcome"] == "the plan is within its bounds", found
    return str(found["request"]["digest"])


def applied(run: Run, digest: str, **body: Any) -> str:
    answer = run.rest("POST", "surgery/apply", json={"digest": digest, **body})
    assert answer.status_code == 202, answer.text
    assert answer.headers["location"] == f"/v1/operations/{answer.json()['id']}"
    return str(answer.json()["id"])


def services_of(run: Run) -> dict[str, list[int]]:
    return {name: run.pids(name) for name in KINDS}


@pytest.mark.runs
@pytest.mark.timeout(1800)
def test_surgery_widens_a_running_agent(run: Run) -> None:
    run.start_new(SCRIPTED)
    run.wait_version(4)
    before = services_of(run)

    plan = planned(run)
    assert plan["parameters_after"] > plan["parameters_before"]
    assert {row["kind"] for row in plan["changes"]} == {"grow_lstm", "slots", "add_actions"}
    assert any(note["code"] == "no-anneal" for note in plan["lint"])
    digest = checked(run, loose(plan["plan"]))
    report = run.rest("GET", f"surgery/checks/{digest}").json()["result"]
    assert report["ok"]
    assert report["samples"] > 0

    # Dry runs and refusals.
    head = run.head()
    dry = run.rest("POST", "surgery/apply", json={"digest": digest}, params={"dry_run": "true"})
    assert dry.status_code == 200
    assert [s["name"] for s in dry.json()["steps"]] == list(STEPS)
    assert run.rest("POST", "surgery/apply", json={"digest": "0" * 64}).status_code == 404
    assert run.status() == "running"

    identity = applied(run, digest, hold=True)
    second = run.rest("POST", "surgery/check", json={"plan": plan["plan"]})
    assert second.status_code == 409
    assert identity in second.json()["detail"]
    at_step(run, identity, "hold")
    assert run.status() == "operating"
    held = run.head()
    assert held >= head
    assert run.rest("POST", f"operations/{identity}/continue").status_code == 200
    done = ended(run, identity)
    assert done["state"] == "done", done
    assert [s["state"] for s in done["steps"]] == ["done"] * len(STEPS)
    published = next(s for s in done["steps"] if s["name"] == "publish")["result"]["version"]
    assert published == held + 1

    # It learns on, with the new shapes, and no process was started by hand or died.
    run.wait_version(published + 3)
    assert run.status() == "running"
    assert services_of(run) == before, run.logs()
    record = run.state().record()
    assert record is not None
    assert (record.epoch, record.chain) == (2, (digest,))
    assert record.model["lstm"] == 32
    old, _ = run.store.fetch(held)
    new, meta = run.store.fetch(published)
    assert new["core.lstm.weight_hh_l0"].shape == (128, 32)
    assert old["core.lstm.weight_hh_l0"].shape == (64, 16)
    assert meta["warming"]
    clone, _ = run.store.fetch(published + 2)
    changed = [n for n in new if not n.startswith(("normaliser", "rewards")) and (new[n] != clone[n]).any()]
    assert changed == [], "the warm-up moved parameters"
    learned, meta = run.store.fetch(published + 3)
    assert not meta.get("warming")
    assert any((learned[n] != clone[n]).any() for n in learned)

    # The version before plays against one after it, brought through the plan.
    match = run.command("eval", "--version", str(published + 3), "--against", str(held), "--games", "4", "--json")
    assert match.returncode == 0, match.stderr + run.logs()
    outcome = json.loads(match.stdout)
    assert outcome["won"] + outcome["lost"] + outcome["drawn"] == 4

    # A second plan on the same parent is stale, and what was applied is in the log.
    again = run.rest("POST", "surgery/apply", json={"digest": digest})
    assert again.status_code == 409
    assert "stale" in again.json()["detail"]
    (row,) = run.rest("GET", "surgery/log").json()["items"]
    assert (row["digest"], row["holds"], row["version"]) == (digest, True, published)
    assert "holds" in run.command("surgery", "log").stdout
    assert run.command("report").returncode == 0
    assert ("wider", published) in [(mark["label"], mark["version"]) for mark in run.report()["marks"]]

    # The file that the run was made from still says otherwise, and undoes nothing.
    last = run.head()
    assert run.end() == 0
    paired = run.command("eval", "--version", str(published + 3), "--against", str(held), "--games", "2", "--json")
    assert paired.returncode == 0, paired.stderr
    assert json.loads(paired.stdout)["games"] == 2
    run.start("--resume", run.folder.name)
    run.wait_version(last + 1)
    assert run.store.fetch(run.head())[0]["core.lstm.weight_hh_l0"].shape == (128, 32)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_failed_surgery_restores_the_run(run: Run) -> None:
    run.start_new(SCRIPTED, "services.controller.operations.pause_seconds=20")
    run.wait_version(6)
    plan = planned(run)
    # The check itself: outside of its bounds.
    strict = plan["plan"] + "bounds:\n  mean_kl: 0.0\n  max_value_change: 0.0\n  max_logit_change: 0.0\n"
    answer = run.rest("POST", "surgery/check", json={"plan": strict})
    outside = ended(run, answer.json()["id"])
    assert outside["outcome"] == "the plan is outside its bounds"
    refused = run.rest("POST", "surgery/apply", json={"digest": outside["request"]["digest"]})
    assert (refused.status_code, refused.json()["type"]) == (409, "urn:five:problem:not-approved")

    digest = checked(run, loose(plan["plan"]))
    for step in ("pause", "check", "checkpoint", "transform", "hold", "publish"):
        stuck = run.pids("rollout-0") if step == "pause" else []
        for pid in stuck:
            os.kill(pid, signal.SIGSTOP)  # it never says that it rests
        faults(run, f"{step} fail\n")
        identity = applied(run, digest, hold=step == "hold")
        if step == "hold":
            at_step(run, identity, "hold")
            assert run.rest("POST", f"operations/{identity}/cancel").status_code == 200
        found = ended(run, identity)
        for pid in stuck:
            os.kill(pid, signal.SIGCONT)
        faults(run, "")
        assert found["state"] == ("cancelled" if step == "hold" else "failed"), found
        assert found["failed_at"] == step
        if step == "pause":
            assert "rollout" in found["outcome"]
        elif step != "hold":
            assert next(s for s in found["steps"] if s["name"] == step)["attempt"] == 3
        untouched(run)
    assert run.rest("GET", "surgery/log").json()["items"] == []
    # And what had failed so often works in the end.
    assert ended(run, applied(run, digest))["state"] == "done"


def untouched(run: Run) -> None:
    """Fail unless the run goes on as before any operation."""
    record = run.state().record()
    assert record is not None
    assert (record.epoch, record.chain) == (1, ())
    assert not list((run.folder.path / "blobs" / "refs" / run.folder.name / "operations").rglob("*checkpoint*"))
    eventually(lambda: run.status() == "running", 60, "the run goes on")
    run.wait_version(run.head() + 2)
    run.check_versions()


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("step", STEPS[:-1])
def test_surgery_survives_killing_all_processes(run: Run, step: str) -> None:
    run.start_new(SCRIPTED)
    run.wait_version(6)
    digest = checked(run, loose(planned(run)["plan"]))
    # Long enough that a kill comes in the middle of it.
    faults(run, f"{step} wait 6\n" if step in ("check", "checkpoint", "transform", "publish") else "")
    identity = applied(run, digest, hold=step == "hold")
    at_step(run, identity, step)
    for name in KINDS:
        for pid in run.pids(name):
            try:
                psutil.Process(pid).kill()
            except psutil.NoSuchProcess:
                pass
    faults(run, "")
    if step == "hold":
        eventually(lambda: run.rest("POST", f"operations/{identity}/continue").status_code == 200, 90, "it goes on")
    found = ended(run, identity)
    assert found["state"] == "done", found
    record = run.state().record()
    assert record is not None
    assert (record.epoch, record.chain) == (2, (digest,))
    run.wait_version(run.head() + 4)
    eventually(lambda: run.status() == "running", 60, "it learns")
    versions = [r.version for r in run.store.records()]
    assert versions == list(range(len(versions))), f"versions are missing: {versions}"
    assert run.rest("GET", "surgery/log").json()["items"][0]["holds"]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_surgery_survives_killing_each_process(run: Run) -> None:
    """Surgeries in sequence on one run. Each kills one process at every step; the next surgery kills the next process.
    Games on other machines: tests/containers/test_surgery.py."""
    run.start_new("services.controller.operations.pause_seconds=120")
    run.wait_version(4)
    waits = "".join(f"{order} wait 3\n" for order in ("check", "checkpoint", "transform", "publish"))
    for turn in range(len(SERVICES)):
        faults(run, "")
        wish = [f"model.unit_hidden={8 + 2 * (turn + 1)}"]
        digest = checked(run, planned(run, name=f"turn-{turn}", overrides=wish)["plan"])
        head = run.head()
        faults(run, waits)  # long enough that a kill comes in the middle of it
        identity = applied(run, digest, hold=True)
        killed = {}
        for place, step in enumerate(STEPS[:-1]):
            at_step(run, identity, step)
            killed[step] = SERVICES[(place + turn) % len(SERVICES)]
            for pid in run.pids(killed[step]):
                os.kill(pid, signal.SIGKILL)
            if step == "hold":
                eventually(lambda: run.rest("POST", f"operations/{identity}/continue").status_code == 200, 90,  # noqa: B023
                           "it goes on")
        found = ended(run, identity, 400)
        # It went on, and says so; the run is the next agent's, whole, and learns.
        assert found["state"] == "done", (killed, found)
        assert found["outcome"].endswith("is the first of the new model; the run is learning"), found
        record = run.state().record()
        assert record is not None
        assert (record.epoch, record.chain[-1], len(record.chain)) == (turn + 2, digest, turn + 1), killed
        eventually(lambda: run.status() == "running", 90, "it learns")
        run.wait_version(max(run.head(), head) + 2)
        assert run.check_versions()[-1] > head
        assert not run.store.pins().keys() - set(run.check_versions())
        assert not list((run.folder.path / "blobs" / "refs" / run.folder.name / "operations").rglob("*.*"))
        assert all(row["holds"] for row in run.rest("GET", "surgery/log").json()["items"])


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("order", ["check", "checkpoint", "transform", "publish"])
@pytest.mark.parametrize("when", ["die", "die-after"])
def test_surgery_survives_the_optimizers_death_at_each_job(run: Run, order: str, when: str) -> None:
    run.start_new(SCRIPTED)
    run.wait_version(6)
    digest = checked(run, loose(planned(run)["plan"]))
    faults(run, f"{order} {when}\n")
    found = ended(run, applied(run, digest))
    assert found["state"] == "done", found
    run.wait_version(run.head() + 4)
    assert run.rest("GET", "surgery/log").json()["items"][0]["holds"]
    versions = [r.version for r in run.store.records()]
    assert versions == list(range(len(versions)))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_rehearsal_learns_and_plays_the_version_before(run: Run) -> None:
    run.start_new(SCRIPTED)
    run.wait_version(6)
    overrides = [part for override in WISH for part in ("--set", override)]
    assert run.command("surgery", "plan", "--name", "wider", "--warm-up", "2", *overrides).returncode == 0
    head = run.head()
    rehearsed = run.command("surgery", "rehearse", "wider.yaml", "--run", run.folder.name, "--versions", "2", "--games",
                            "4", seconds=900)
    # Two versions of a tiny model decide nothing about who is better.
    assert rehearsed.returncode in (0, 1), rehearsed.stderr
    assert "of 4 games in pairs with sides swapped" in rehearsed.stdout
    fork = run.folder.path.parent / f"{run.folder.name}-wider"
    assert list((fork / "blobs" / "refs" / fork.name / "versions").iterdir())
    # The run noticed nothing.
    untouched(run)
    assert run.head() > head
    assert run.rest("GET", "operations").json()["items"] == []
    (told,) = run.rest("GET", "surgery/rehearsals").json()["items"]
    assert (told["state"], told["by"], told["fork"], told["played"]) == ("done", "command", fork.name, 4)
    assert sum(told["result"][key] for key in ("won", "drawn", "lost")) == 4
    assert told["result"]["worse"] == bool(rehearsed.returncode)
    # The same, asked for over REST: `five train` carries it out.
    asked = run.command("surgery", "rehearse", "wider.yaml", "--run", run.folder.name, "--ask", "--versions", "2",
                        "--games", "2", seconds=900)
    assert asked.returncode in (0, 1), asked.stderr
    # A state that is shorter than the pause between two requests is not seen.
    seen = [state for state in ("warming", "learning", "playing") if f", {state}, " in asked.stderr]
    assert len(seen) >= 2, asked.stderr
    assert "done: won" in asked.stdout
    # Another one is cancelled while it learns: its fork ends, and the run goes on.
    body = {"plan": (run.place / "wider.yaml").read_text(), "versions": 1000}
    made = run.rest("POST", "surgery/rehearse", json=body).json()
    eventually(lambda: now(run, made)["state"] in ("warming", "learning"), 300, "the fork learns")
    forked = str(run.folder.path.parent / now(run, made)["fork"])
    assert of_fork(forked)
    assert run.rest("POST", f"surgery/rehearsals/{made['id']}/cancel").status_code == 200
    eventually(lambda: now(run, made)["state"] == "cancelled", 120, "the rehearsal is cancelled")
    eventually(lambda: not of_fork(forked), 30, "the fork's processes are gone")
    # And one whose process is killed: nothing of the fork outlives it, and that it failed is seen.
    made = run.rest("POST", "surgery/rehearse", json=body).json()
    eventually(lambda: now(run, made)["state"] in ("warming", "learning"), 300, "the fork learns")
    forked = str(run.folder.path.parent / now(run, made)["fork"])
    (process,) = [p for p in psutil.process_iter(["cmdline"]) if (p.info["cmdline"] or [])[-1:] == [made["id"]]]
    process.kill()
    eventually(lambda: now(run, made)["state"] == "failed", 60, "that it failed is seen")
    assert "SIGKILL" in now(run, made)["error"]
    eventually(lambda: not of_fork(forked), 30, "the fork's processes are gone")
    head = run.head()
    run.wait_version(head + 1)
    untouched(run)


def now(run: Run, made: dict[str, Any]) -> dict[str, Any]:
    """Return a rehearsal's present state."""
    return dict(run.rest("GET", f"surgery/rehearsals/{made['id']}").json())


def of_fork(path: str) -> list[int]:
    """Return the processes of a fork's folder."""
    return [p.pid for p in psutil.process_iter(["cmdline"]) if any(path in word for word in p.info["cmdline"] or ())]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_optimizers_load_the_first_ranks_new_checkpoint(run: Run) -> None:
    run.start_new(SCRIPTED, "services.optimizer.optimizers=2")
    run.wait_version(4, 300)
    done = ended(run, applied(run, checked(run, loose(planned(run)["plan"]))), 400)
    assert done["state"] == "done", done
    run.wait_version(run.head() + 3, 300)
    assert run.store.fetch(run.head())[0]["core.lstm.weight_hh_l0"].shape == (128, 32)
    prints = {i.id: str(i.stats["compared"]).split(":")[1] for i in run.state().services("optimizer")}
    assert len(prints) == 2
    assert all(int(value, 16) for value in prints.values())
