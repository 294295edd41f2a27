"""DraftAnalyzer over REST, on a real table and recorded games."""

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dota import registry
from five.agent.draft.advice import advise
from five.agent.draft.leaves import HeroPool, LeafTable
from five.run.draft_tables import DraftTableStore
from rapid.embedded_redis import EmbeddedRedis
from tests.services.live_controller import RUN, VIEWER, LiveController, live, problem
from tests.waiting import eventually

HEROES = ("lion", "nevermore", "sniper", "sven", "viper")


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[LiveController]:
    with EmbeddedRedis(tmp_path / "redis", append_only=False).start() as store, live(store.url) as found:
        yield found


def table(controller: LiveController, version: int, seed: int) -> LeafTable:
    pool = HeroPool(HEROES, 2)
    win = np.random.default_rng(seed).random(pool.shape, dtype=np.float32)
    leaves = LeafTable(pool, win, {"version": version})
    assert controller.context.blobs is not None
    DraftTableStore(controller.context.blobs, RUN).put(f"version-{version}", leaves)
    return leaves


def test_draft_reads_the_newest_or_named_table(controller: LiveController) -> None:
    missing = problem(controller.ask("GET", "/v1/draft", VIEWER), 404, "not-found")
    assert "five draft --make" in missing["detail"]
    old, new = table(controller, 4, 0), table(controller, 12, 1)
    names = [found["name"] for found in controller.ask("GET", "/v1/draft/tables", VIEWER).json()["tables"]]
    assert names == ["version-12", "version-4"]
    for leaves, parameters in ((new, {}), (old, {"table": "version-4"})):
        found = controller.ask("GET", "/v1/draft", VIEWER, params={"dire": "lion", **parameters}).json()
        expected = advise(leaves, dire=["lion"])
        assert found["win"] == pytest.approx(expected.win) and found["order"] == "DRRD" and found["to_move"] == "R"
        assert [(c["hero"], c["own"]) for c in found["choices"]] == [
            (c.hero, pytest.approx(c.win)) for c in expected.choices]
        assert found["line_ups"] == 30 and found["games"] == 0 and found["choices"][0]["played"] is None
    banned = controller.ask("GET", "/v1/draft", VIEWER, params={"banned": "viper", "order": "rdrd"}).json()
    assert banned["win"] == pytest.approx(advise(new, banned=["viper"], order="RDRD").win)
    refused = problem(controller.ask("GET", "/v1/draft", params={"dire": "axe"}), 409, "conflict")
    assert "the pool has lion, nevermore" in refused["detail"]
    assert controller.ask("GET", "/v1/draft", params={"dire": "<script>"}).status_code == 422
    assert controller.ask("GET", "/v1/draft", params={"table": "../../etc"}).status_code == 422
    assert controller.ask("GET", "/v1/draft", token="").status_code == 401
    assert controller.ask("GET", "/v1/draft", params={"banned": "x" * 1000}).status_code == 409
    assert controller.ask("GET", "/v1/draft", params={"banned": "x" * 1001}).status_code == 422
    table(controller, 12, 2)  # made again
    again = controller.ask("GET", "/v1/draft", VIEWER).json()
    assert again["win"] != pytest.approx(advise(new).win)


@pytest.mark.parametrize("damage", [b"no table", None])
def test_a_damaged_table_is_not_found(controller: LiveController, damage: bytes | None) -> None:
    """The contents are not a table, or do not match their digest."""
    table(controller, 4, 0)
    blobs, name = controller.context.blobs, f"{RUN}/draft/version-4"
    assert blobs is not None
    if damage is not None:
        blobs.put(damage, name)
    else:
        digest = blobs.ref(name).digest
        (Path(blobs.url) / f"objects/{digest[:2]}/{digest}").write_bytes(b"x" * blobs.ref(name).size)
    refused = problem(controller.ask("GET", "/v1/draft", VIEWER), 404, "not-found")
    assert "the draft table is unreadable" in refused["detail"]
    problem(controller.ask("GET", "/v1/draft", VIEWER, params={"table": "version-5"}), 404, "not-found")


def test_slow_drafts_of_a_viewer_block_nobody(controller: LiveController) -> None:
    """A waiting request holds one of the threads that all routes share."""
    end = threading.Event()
    controller.context.drafts.draft = lambda *_: end.wait(15) and {}  # type: ignore[method-assign,assignment]
    statuses: list[int] = []
    waiting = [threading.Thread(target=lambda: statuses.append(
        controller.ask("GET", "/v1/draft", VIEWER).status_code)) for _ in range(45)]
    try:
        for thread in waiting:
            thread.start()
        eventually(lambda: len(statuses) == 43)
        assert set(statuses) == {429}
        assert controller.ask("GET", "/v1/draft/tables", VIEWER).status_code == 200
        refused = problem(controller.ask("GET", "/v1/draft/calibration", VIEWER), 429, "too-many-requests")
        assert "services.controller.limits.drafts" in refused["detail"]
        assert controller.ask("GET", "/v1/draft/calibration").status_code == 200, "an operator has free slots"
    finally:
        end.set()
        for thread in waiting:
            thread.join()


def test_support_and_calibration_grow_with_the_games(controller: LiveController) -> None:
    table(controller, 4, 0)
    build = registry.load().heroes
    lion, sniper, sven = (build.index(hero) for hero in ("lion", "sniper", "sven"))
    assert controller.ask("GET", "/v1/draft/calibration", VIEWER).json()["games"] == 0
    record = {"lineup": [[lion, sven], [sniper, sven]], "winner": "radiant", "outcome": "selfplay", "version": 3,
              "win_probability": [0.6, 0.3]}
    for games in (1, 2, 3):
        controller.context.series.append("games", record)
        found = controller.ask("GET", "/v1/draft", VIEWER, params={"dire": "lion"}).json()
        assert found["games"] == games
        sniped = next(choice for choice in found["choices"] if choice["hero"] == "sniper")
        assert (sniped["played"], sniped["rarest"]["games"], sniped["rarest"]["allied"]) == (games, games, False)
        calibration = controller.ask("GET", "/v1/draft/calibration", VIEWER).json()
        assert calibration["games"] == games and calibration["brier"] == pytest.approx(0.35 ** 2)


def test_draft_tree_is_solved_once(controller: LiveController, monkeypatch: pytest.MonkeyPatch) -> None:
    solved = []
    monkeypatch.setattr("five.services.controller.games.drafts.advise",
                        lambda *query: (solved.append(query), advise(*query))[1])
    table(controller, 4, 0)
    for games in range(3):
        found = controller.ask("GET", "/v1/draft", VIEWER, params={"dire": "lion", "banned": "sven"})
        assert found.json()["games"] == games and len(solved) == 1
        controller.context.series.append("games", {"lineup": [[0], [1]]})
    assert controller.ask("GET", "/v1/draft", VIEWER, params={"dire": "lion,lion", "banned": "sven"}).status_code == 409
    table(controller, 4, 1)  # made again
    controller.ask("GET", "/v1/draft", VIEWER, params={"dire": "lion", "banned": "sven"})
    assert len(solved) == 3


def test_records_before_the_controllers_start_are_counted(controller: LiveController,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("five.services.controller.games.drafts.PAGE", 3)
    table(controller, 4, 0)
    controller.context.series.extend("games", [{"lineup": [[0], [1]]}] * 10 + [{"winner": "dire"}])
    assert controller.ask("GET", "/v1/draft", VIEWER).json()["games"] == 10
    controller.context.series.extend("games", [{"lineup": [[0], [1]]}] * 4)
    assert controller.ask("GET", "/v1/draft", VIEWER).json()["games"] == 14
