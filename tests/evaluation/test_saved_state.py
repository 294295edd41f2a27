"""Record, ratings and draft evidence of a run in its folder."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import redis

from dota.registry import load
from five.agent.draft.evidence import EVIDENCE_GAMES
from five.evaluation.saved_state import load_evidence, load_record, save_evidence, save_ladder, save_record
from rapid.store.record import RunRecord
from rapid.store.series import Record
from rapid.store.state import RunState
from rapid.store.surgery_plans import PlanStore

PLAN = {"plan": "steps: []", "game": {}, "model": {}}


@pytest.fixture
def state(redis_url: str) -> RunState:
    database = redis.Redis.from_url(redis_url)
    database.flushdb()
    return RunState(database, "saved")


def test_record_is_saved_with_its_applied_plans_only(state: RunState, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    save_record(state, path)
    assert not path.exists() and load_record(path) is None
    for digest in ("a", "b", "other"):
        PlanStore(state).put(digest, {**PLAN, "plan": digest})
    record = RunRecord(3, 2, {"mode": "5v5"}, {"lstm": 8}, "l", "s", ("a", "b", "lost"))
    state.create({}, "test", record)
    save_record(state, path)
    saved = load_record(path)
    assert saved is not None and saved.record == record
    assert {digest: plan["plan"] for digest, plan in saved.plans.items()} == {"a": "a", "b": "b"}


def test_record_without_surgery_has_an_empty_chain(state: RunState, tmp_path: Path) -> None:
    PlanStore(state).put("a", PLAN)
    state.create({"game": {"a": 1}, "model": {}}, "test")
    save_record(state, tmp_path / "record.json")
    saved = load_record(tmp_path / "record.json")
    assert saved is not None and saved.plans == {} and saved.record.game == {"a": 1}
    assert saved.chain.links == () == saved.record.chain


@pytest.mark.parametrize("text", ["", "[]", "{", '{"record": {}}', '{"record": {"revision": 0}, "plans": {}}',
                                  '{"record": {"revision": 1, "chain": []}, "plans": 3}', "[" * 100_000])
def test_damaged_record_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "record.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"record\.json is not a run's record"):
        load_record(path)


def test_ratings_are_saved_if_there_are_any(state: RunState, tmp_path: Path) -> None:
    path = tmp_path / "ladder.json"
    save_ladder(state, path)
    assert not path.exists()
    state.table("ratings").set("rated:a", {"mu": 1.5})
    save_ladder(state, path)
    assert json.loads(path.read_text()) == {"rated:a": {"mu": 1.5}}


def game(first: int, second: int) -> Record:
    return Record("1-0", 0.0, {"lineup": [[first], [second]], "winner": "radiant", "outcome": "selfplay", "version": 4,
                               "win_probability": [0.7, 0.3]})


def test_evidence_counts_the_newest_games(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "evidence.json"
    assert load_evidence(path).games == 0 and load_evidence(path).heroes == ()
    monkeypatch.setattr("five.evaluation.saved_state.EVIDENCE_GAMES", 3)
    save_evidence([game(2, 3)] * 2 + [game(0, 1)] * 5, path)
    found = load_evidence(path)
    assert found.games == 3 and found.heroes == tuple(load().heroes)
    assert (found.opposed[0, 1], found.opposed[2, 3]) == (1, 2)
    assert EVIDENCE_GAMES == 20_000


def test_deeply_nested_evidence_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "evidence.json"
    path.write_text("[" * 100_000)
    with pytest.raises(ValueError, match="nested too deep"):
        load_evidence(path)


@pytest.mark.parametrize("text", ["{", "[]", '{"heroes": []}'])
def test_unreadable_evidence_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "evidence.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(f"{path}: ")):
        load_evidence(path)


def test_saved_files_replace_earlier_ones(state: RunState, tmp_path: Path) -> None:
    path, table = tmp_path / "ladder.json", state.table("ratings")
    written: list[Any] = []
    for value in (1, 2):
        table.set("x", value)
        save_ladder(state, path)
        written.append(json.loads(path.read_text()))
    assert written == [{"x": 1}, {"x": 2}] and [file.name for file in tmp_path.iterdir()] == ["ladder.json"]
