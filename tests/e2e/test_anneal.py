"""A change annealed into a real `five train`, under the guard's real games; and a real run that goes back."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from five.anneal.arms import Arm, arm_of
from five.anneal.pairs import pairs_of
from rapid.store.anneal import AnnealStore
from rapid.store.series import Series
from services.optimizer.faults import VARIABLE
from tests.e2e.running import Run, eventually
from tests.e2e.test_surgery import at_step, ended

# Short games, many at a time: what a game costs here is mostly the steps' round trips, which all games share.
MANY = ("services.evaluator.games=24", "services.evaluator.share_guard=1.0", "services.rollout.games=12",
        "rating.games_per_rating=1")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path)
    yield run
    run.destroy()


def anneal(run: Run) -> dict[str, Any]:
    answer = run.rest("GET", "anneal")
    answer.raise_for_status()
    return dict(answer.json())


def until(run: Run, what: str, seconds: float, *states: str, attempt: int = 1) -> dict[str, Any]:
    """The anneal once it is in one of these states of an attempt."""
    def there() -> dict[str, Any] | None:
        run.check()
        now = anneal(run)
        return now if now["anneal"]["state"] in states and now["anneal"]["attempt"] == attempt else None

    try:
        found = eventually(there, seconds, what)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{json.dumps(anneal(run), indent=1)}\n{run.logs()}") from None
    assert found is not None
    print(f"{what}: version {found['version']}, {found['anneal']['said']!r}, {found['findings']}")
    return found


def begun(run: Run, **body: Any) -> dict[str, Any]:
    answer = run.rest("POST", "anneal", json=body)
    assert answer.status_code == 202, answer.text
    assert ended(run, answer.json()["id"])["state"] == "done"
    return anneal(run)


def games(run: Run, count: int, after: str = "-") -> list[dict[str, Any]]:
    """The records of ``count`` games that have ended since a record."""
    series = Series(run.redis("state"), run.folder.name)

    def enough() -> list[dict[str, Any]] | None:
        run.check()
        found = [record.values for record in series.read("games", after)]
        return found if len(found) >= count else None

    return eventually(enough, 300, f"{count} games have ended") or []


def newest_game(run: Run) -> str:
    last = Series(run.redis("state"), run.folder.name).last("games")
    return "-" if last is None else last.id


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_another_patch_is_annealed_in_game_by_game_and_promoted(run: Run) -> None:
    run.start_new("game.patch='7.19'", *MANY)
    run.wait_version(4)
    first = begun(run, name="patch-7.21d", overrides={"patch": "7.21d"}, versions=20,
                  guard={"loss": 0.8, "pairs": 400}, reason="the finals are played on it")
    base, trial = first["anneal"]["base"], f"{first['anneal']['id']}/1"
    assert first["share"] < 1

    # Games as short as these decide nothing, and pairs end drawn: of such, seventeen rule out a loss of 0.8.
    # A share that is set: each game's arm is that of its id, about as many as the share says.
    assert run.rest("PUT", "anneal/share", json={"share": 0.4}).status_code == 200
    games(run, 24, newest_game(run))  # those that had begun before, and a look at the document
    drawn = games(run, 60, newest_game(run))
    assert {g["anneal"] for g in drawn} == {trial}
    assert [g["arm"] for g in drawn] == [arm_of(trial, g["game"], 0.4) for g in drawn]
    share = sum(g["arm"] == Arm.NEW for g in drawn) / len(drawn)
    assert 0.2 < share < 0.6
    print(f"{len(drawn)} games at a share of 0.4: {share:.2f} have the change")

    # It grows on by itself, waits at its gates for the guard's pairs, and becomes the game.
    assert run.rest("POST", "anneal/resume").status_code == 200
    done = until(run, "promoted", 1500, "promoted")
    assert "a loss of 0.8 is ruled out under both rules" in done["anneal"]["said"]
    pairs = pairs_of(AnnealStore(run.state()).pairs().all(), trial)
    for rule in Arm:
        of_rule = [pair for pair in pairs if pair.rule is rule]
        assert len(of_rule) >= 10
        assert min(pair.version for pair in of_rule) > base
    whole = [pair for pair in pairs if pair.share == 1]
    assert {pair.rule for pair in whole} == set(Arm), "the last gate rests on versions that learned under the change"

    record = run.state().record()
    assert record is not None
    assert (record.game["patch"], record.epoch) == ("7.21d", 1)
    events = [e.what for e in run.state().events.last(1000) if e.what.startswith("anneal.")][::-1]
    assert events[0] == "anneal.began"
    assert events[-2:] == ["anneal.made_the_game", "anneal.promoted"]
    assert run.rest("GET", "status").json()["drift"] == [{"key": "game.patch", "file": "7.19", "record": "7.21d"}]

    # Services renew themselves under it; games are of one kind again, and it learns on.
    eventually(lambda: all(i.revision == record.revision for i in run.state().services()), 120, "all have renewed")
    after = games(run, 30, newest_game(run))
    assert all("arm" not in g for g in after[-12:])
    run.wait_version(run.head() + 3)
    run.check_versions()
    assert run.end() == 0


def tensors(run: Run, version: int) -> dict[str, Any]:
    found, _ = run.store.fetch(version)
    return dict(found)


def same(run: Run, a: int, b: int) -> bool:
    first, second = tensors(run, a), tensors(run, b)
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_run_goes_back_to_a_kept_version_though_its_optimizer_dies_at_it(run: Run, monkeypatch: pytest.MonkeyPatch
                                                                           ) -> None:
    monkeypatch.setenv(VARIABLE, str(run.place / "faults"))
    run.start_new()
    run.wait_version(8)
    target = 4
    changed = run.command("schedules", "set", "learning_rate", "1e-4", "--reason", "finer")
    assert changed.returncode == 0, changed.stderr
    run.wait_version(run.head() + 4)
    # What would be undone is listed first, and nothing is changed by asking.
    listed = run.rest("GET", f"revert/{target}").json()
    assert listed["versions"][0]["first"] == target + 1
    assert [row["name"] for row in listed["schedules"]] == ["learning_rate"]
    assert str(target) in run.command("revert", "--targets").stdout
    dry = run.command("revert", "--to", str(target), "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert f"versions {target + 1} to" in dry.stdout
    assert run.rest("GET", "operations").json()["items"] == []

    # kill -9 in the middle of making the checkpoint, and once more after the cut-over, before it was answered.
    (run.place / "faults").write_text("transform wait 8\npublish die-after\n")
    answer = run.rest("POST", "revert", json={"to": target, "epoch": 1, "reason": "to see it"})
    assert answer.status_code == 202, answer.text
    identity = answer.json()["id"]
    at_step(run, identity, "transform")
    eventually(lambda: "carries out" in str(run.rest("GET", f"operations/{identity}").json()), 60, "it is at work")
    run.kill("optimizer-0")
    (run.place / "faults").write_text("publish die-after\n")
    done = ended(run, identity, 400)
    assert done["state"] == "done", done
    steps = {step["name"]: step for step in done["steps"]}
    first = steps["publish"]["result"]["version"]
    left = first - 1

    # It is that version, under the next number, in the next epoch; the branch that was left is kept and can be had.
    assert same(run, first, target)
    assert not same(run, left, target)
    record = run.state().record()
    assert record is not None
    assert record.epoch == 2
    (branch,) = run.rest("GET", "branches").json()["items"]
    assert (branch["first"], branch["last"], branch["went_back_to"], branch["continued_as"]) == (
        target + 1, left, target, first)
    assert branch["left_by"] == identity
    assert f"versions {target + 1} to {left}" in run.command("revert", "--branches").stdout
    run.wait_version(first + 4)
    versions = run.check_versions()
    assert versions[:first] == list(range(first))
    left_behind = set(range(target + 1, first))
    assert listed["opponents"]
    assert not left_behind & {row["version"] for row in run.rest("GET", "opponents").json()["items"]}

    # And forward again, to the newest of the branch: a revert is reverted like anything else.
    (run.place / "faults").write_text("")
    again = run.command("revert", "--to", str(left), "--yes", "--json")
    assert again.returncode == 0, again.stderr
    found = ended(run, json.loads(again.stdout[again.stdout.index("{"):])["id"], 400)
    assert found["state"] == "done", found
    back = next(step for step in found["steps"] if step["name"] == "publish")["result"]["version"]
    assert same(run, back, left)
    print(f"version {first} went on from {target}, version {back} from {left}; of them {len(run.check_versions())}")
    run.wait_version(back + 2)
    assert run.end() == 0
