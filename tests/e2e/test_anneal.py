"""Anneals and reverts of a real `five train`, with the guard's real games."""

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dota.spaces import MOVE, OFFSETS
from five.agent.anneal.guard import GuardConfig, GuardVerdict, decide
from five.agent.anneal.pair_records import parse_pairs
from five.agent.anneal.variants import Variant, assign_variant
from rapid.store.anneal import AnnealStore
from rapid.store.series import Series
from tests.e2e.optimizer_faults import inject_faults
from tests.e2e.running import Run, eventually
from tests.e2e.test_surgery import at_step, ended

# Short games, many at a time: what a game costs here is mostly the steps' round trips, which all games share. The
# evaluator's are all the guard's, and it may take a core.
MANY = ("services.evaluator.games=48", "services.evaluator.guard_share=1.0", "services.evaluator.cpu_share=0",
        "services.rollout.games=12")


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
    """Return the anneal once an attempt is in one of these states."""
    def there() -> dict[str, Any] | None:
        run.check()
        now = anneal(run)
        return now if now["anneal"]["state"] in states and now["anneal"]["attempt"] == attempt else None

    try:
        found = eventually(there, seconds, what)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{json.dumps(anneal(run), indent=1)}\n{run.logs()}") from None
    assert found is not None
    print(f"{what}: version {found['version']}, {found['anneal']['reason']!r}, {found['findings']}")
    return found


def begun(run: Run, **body: Any) -> dict[str, Any]:
    answer = run.rest("POST", "anneal", json=body)
    assert answer.status_code == 202, answer.text
    assert ended(run, answer.json()["id"])["state"] == "done"
    return anneal(run)


def games(run: Run, count: int, after: str = "-") -> list[dict[str, Any]]:
    """Return ``count`` records of games that ended after a record."""
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
def test_patch_is_annealed_and_promoted(run: Run) -> None:
    run.start_new("game.patch=7.19", "game.max_game_seconds=8", "game.start_seconds=-1", *MANY)
    run.wait_version(4)
    began = time.monotonic()
    first = begun(run, name="patch-7.21d", overrides={"patch": "7.21d"}, versions=20,
                  guard={"loss": 0.8, "miss": 0.2, "pairs": 400}, reason="the finals are played on it")
    base, trial = first["anneal"]["base"], f"{first['anneal']['id']}/1"
    assert first["share"] < 1

    # A share that is set: each game's variant is that of its id, about as many as the share says.
    assert run.rest("PUT", "anneal/share", json={"share": 0.4}).status_code == 200
    games(run, 24, newest_game(run))  # those that had begun before, and a look at the document
    drawn = games(run, 60, newest_game(run))
    assert {g["anneal"] for g in drawn} == {trial}
    assert [g["variant"] for g in drawn] == [assign_variant(trial, g["game"], 0.4) for g in drawn]
    share = sum(g["variant"] == Variant.NEW for g in drawn) / len(drawn)
    assert 0.2 < share < 0.6
    print(f"{len(drawn)} games at a share of 0.4: {share:.2f} have the change")

    # It grows on by itself, waits at its gates for the guard's pairs, and becomes the game. Games as short as these
    # decide nothing, and pairs end drawn: of such, eleven rule a loss of 0.8 out with a chance of 0.2 to miss it.
    assert run.rest("POST", "anneal/resume").status_code == 200
    done = until(run, "promoted", 900, "promoted")
    print(f"promoted {time.monotonic() - began:.0f} s after it began, {done['version'] - base} versions")
    assert "a loss of 0.8 is ruled out under both rules" in done["anneal"]["reason"]
    pairs = parse_pairs(AnnealStore(run.state()).pairs().all(), trial)
    for rule in Variant:
        of_rule = [pair for pair in pairs if pair.rule is rule]
        print(f"{rule} rule: {len(of_rule)} pairs, {sum(pair.share == 1 for pair in of_rule)} at a share of 1")
        assert len(of_rule) >= 10
        assert min(pair.version for pair in of_rule) > base
    whole = [pair for pair in pairs if pair.share == 1]
    assert {pair.rule for pair in whole} == set(Variant), "the last gate needs versions that learned the change"

    record = run.state().record()
    assert record is not None
    assert (record.game["patch"], record.epoch) == ("7.21d", 1)
    events = [e.what for e in run.state().events.last(1000) if e.what.startswith("anneal.")][::-1]
    assert events[0] == "anneal.began"
    assert events[-2:] == ["anneal.made_the_game", "anneal.promoted"]
    # Services renew themselves under it; games are of one kind again, and it learns on.
    eventually(lambda: all(i.revision == record.revision for i in run.state().services()), 120, "all have renewed")
    drift = eventually(lambda: run.rest("GET", "status").json()["drift"], 60, "the controller says how it differs")
    assert drift == [{"key": "game.patch", "file": "7.19", "record": "7.21d"}]
    after = games(run, 30, newest_game(run))
    assert all("variant" not in g for g in after[-12:])
    run.wait_version(run.head() + 3)
    run.check_versions()
    assert run.end() == 0


def walks_to_its_death(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters that make a version walk into the enemy's tower whatever it observes. The Dire's view is
    mirrored, so the direction is the same for both sides."""
    names = ("embeddings.tables.action", "heads.primary.weight", "heads.primary.bias", "heads.offsets.weight",
             "heads.offsets.bias")
    table, weight, bias, offsets, ways = (np.zeros_like(tensors[name]) for name in names)
    table[MOVE, 0] = bias[0] = 7.0  # a logit of 49 against 0
    ways.reshape(-1, 2, OFFSETS)[..., -1] = 50.0
    return dict(zip(names, (table, weight, bias, offsets, ways), strict=True))


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_harmful_change_is_reverted_retried_and_given_up(
        run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    inject_faults(monkeypatch, run.place / "faults")
    run.start_new("game.kills_to_win=1", "game.max_game_seconds=55", "game.start_seconds=0", *MANY)
    run.wait_version(4)
    assert run.command("pause").returncode == 0
    eventually(lambda: run.status() == "paused", 60, "the run is paused")
    began = time.monotonic()
    first = begun(run, name="two-kills", overrides={"kills_to_win": 2}, versions=20,
                  policy={"tries": 2, "slower": 2.0}, reason="to see it fail")
    base, identity = first["anneal"]["base"], first["anneal"]["id"]
    # Every version learned while games have the change walks into the enemy's tower.
    bad = walks_to_its_death(tensors(run, base))
    np.savez(run.place / "bad.npz", **bad)
    (run.place / "faults").write_text(f"version weights {run.place / 'bad.npz'}\n")
    assert run.command("resume").returncode == 0

    def caught(attempt: int) -> dict[str, Any]:
        """Return the attempt's failure by the guard's verdict on pairs of real games."""
        until(run, f"try {attempt} has failed", 900, "failed", attempt=attempt)
        found = decide(GuardConfig(), parse_pairs(AnnealStore(run.state()).pairs().all(), f"{identity}/{attempt}"))
        assert found.verdict is GuardVerdict.FAIL
        for finding in found.findings:
            print(f"try {attempt}, {time.monotonic() - began:.0f} s in: {finding}")
        return {"reason": found.reason}

    def went_back(count: int) -> Any:
        """Return the newest branch once there are so many."""
        branches = eventually(lambda: found if len(found := run.rest("GET", "branches").json()["items"]) == count
                              else None, 300, f"{count} reverts are through")
        newest = max(branches, key=lambda branch: branch["continued_as"])
        operation = ended(run, newest["left_by"], 300)
        assert (operation["state"], operation["kind"], operation["who"]) == ("done", "revert", "controller")
        assert newest["went_back_to"] == base
        assert near(run, newest["continued_as"], base)
        assert not near(run, newest["last"], base)
        record = run.state().record()
        assert record is not None
        assert (record.epoch, record.game["kills_to_win"]) == (1 + count, 1)
        print(f"reverted to {base} as {newest['continued_as']}, {time.monotonic() - began:.0f} s in")
        return newest

    assert "rule the newest version is worse" in caught(1)["reason"]
    left = went_back(1)
    assert (left["first"], left["last"]) == (base + 1, left["continued_as"] - 1)
    again = until(run, "the second try", 120, "ramping", "holding", attempt=2)["anneal"]
    assert (again["ramp"]["length"], again["base"], again["id"]) == (40, base, identity)
    assert "attempt 2 of 2, over 40 versions; previous attempt: under the" in again["reason"]

    caught(2)
    (run.place / "faults").write_text("")
    went_back(2)
    over = until(run, "given up", 120, "reverted", attempt=2)
    assert over["anneal"]["reason"].endswith("Reverted after the last of 2 attempts")
    assert "the newest version is worse than the last one before the change" in over["anneal"]["reason"]
    assert over["share"] == 0
    events = [e.what for e in run.state().events.last(1000) if e.what.startswith("anneal.")][::-1]
    assert [what for what in events if what != "anneal.holding"] == [
        "anneal.began", "anneal.failed", "anneal.ramping", "anneal.failed", "anneal.reverted"]
    # Learning continues from the previous parameters, without the change.
    games(run, 12, newest_game(run))
    assert all("variant" not in game for game in games(run, 12, newest_game(run)))
    head = run.wait_version(run.head() + 3)
    assert np.abs(tensors(run, head)["heads.offsets.bias"]).max() < 5
    run.check_versions()
    assert run.end() == 0


def tensors(run: Run, version: int) -> dict[str, Any]:
    found, _ = run.store.fetch(version)
    return dict(found)


def near(run: Run, a: int, b: int) -> bool:
    """Return whether the action heads of two versions differ by a few gradient steps at most. The checkpoint of an
    anneal may be part of an iteration past its version."""
    first, second = tensors(run, a), tensors(run, b)
    return all(np.abs(first[name] - second[name]).max() < 0.02 for name in first if name.startswith("heads."))


def same(run: Run, a: int, b: int) -> bool:
    first, second = tensors(run, a), tensors(run, b)
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_revert_survives_the_optimizers_death(run: Run, monkeypatch: pytest.MonkeyPatch
                                                                           ) -> None:
    inject_faults(monkeypatch, run.place / "faults")
    run.start_new()
    run.wait_version(8)
    target = 4
    changed = run.command("schedules", "set", "learning_rate", "1e-4", "--reason", "finer")
    assert changed.returncode == 0, changed.stderr
    run.wait_version(run.head() + 4)
    # The preview lists the effects of a revert and changes nothing.
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
    eventually(lambda: "which runs the job" in str(run.rest("GET", f"operations/{identity}").json()), 60, "at work")
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
