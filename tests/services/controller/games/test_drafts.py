"""Draft analysis of a run: its tables, what is cached, and the statistics of its training games."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis

from five.agent.draft.advice import advise
from five.agent.draft.leaves import HeroPool, LeafTable
from five.run.draft_tables import DraftTableStore
from five.services.controller.games import drafts
from five.services.controller.games.drafts import DraftAnalyzer
from rapid.blobs import BlobMissing, BlobStore
from rapid.store.series import Series
from tests.services.live_controller import RUN

HEROES = ("lion", "nevermore", "sniper", "sven", "viper")
GAME = {"lineup": [[0], [1]]}


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(str(tmp_path))


@pytest.fixture
def series(redis_client: redis.Redis) -> Series:
    return Series(redis_client, RUN)


@pytest.fixture
def analyzer(blobs: BlobStore, series: Series) -> DraftAnalyzer:
    return DraftAnalyzer(RUN, lambda: blobs, series)


def put(blobs: BlobStore, *versions: int) -> None:
    """Store a table of each version."""
    pool = HeroPool(HEROES, 2)
    for version in versions:
        win = np.random.default_rng(version).random(pool.shape, dtype=np.float32)
        DraftTableStore(blobs, RUN).put(f"version-{version}", LeafTable(pool, win, {"version": version}))


def ask(analyzer: DraftAnalyzer, name: str | None = None, radiant: tuple[str, ...] = (), dire: tuple[str, ...] = (),
        banned: tuple[str, ...] = (), order: str = "DRRD") -> dict[str, Any]:
    return analyzer.draft(name, radiant, dire, banned, order)


def test_controller_without_a_blob_store_has_no_tables(series: Series) -> None:
    analyzer = DraftAnalyzer(RUN, lambda: None, series)
    assert analyzer.tables() == []
    for name in (None, "version-1"):
        with pytest.raises(BlobMissing, match=r"blobs\.url"):
            ask(analyzer, name)


def test_a_missing_table_is_reported(analyzer: DraftAnalyzer, blobs: BlobStore) -> None:
    with pytest.raises(BlobMissing, match="five draft --make"):
        ask(analyzer)
    put(blobs, 3)
    with pytest.raises(BlobMissing, match="version-9"):
        ask(analyzer, "version-9")


def test_tables_that_are_unreadable_or_removed_are_skipped(
        analyzer: DraftAnalyzer, blobs: BlobStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(blobs, 1, 2, 3, 5)
    (tmp_path / f"refs/{RUN}/draft/version-2").write_text("{")
    blobs.put(b"no table", f"{RUN}/draft/version-4")
    names = DraftTableStore(blobs, RUN).names()
    assert names == ["version-5", "version-4", "version-3", "version-2", "version-1"]
    monkeypatch.setattr(DraftTableStore, "names", lambda self: names)
    blobs.remove_ref(f"{RUN}/draft/version-3")
    assert [(table["name"], table["facts"]) for table in analyzer.tables()] == [
        ("version-5", {"version": 5}), ("version-1", {"version": 1})]
    assert ask(analyzer, "version-1")["table"] == "version-1"


def test_newest_table_answers_without_a_name(analyzer: DraftAnalyzer, blobs: BlobStore) -> None:
    put(blobs, 2, 10)
    assert ask(analyzer)["table"] == "version-10" and ask(analyzer, "version-2")["table"] == "version-2"
    assert ask(analyzer)["win"] != ask(analyzer, "version-2")["win"]


def test_two_tables_last_used_stay_in_memory(analyzer: DraftAnalyzer, blobs: BlobStore, monkeypatch: pytest.MonkeyPatch
                                             ) -> None:
    put(blobs, 1, 2, 3)
    reads: list[str] = []
    read = DraftTableStore.read
    monkeypatch.setattr(DraftTableStore, "read", lambda self, name: (reads.append(name), read(self, name))[1])
    for version in (1, 2, 1, 3, 1, 2):
        assert ask(analyzer, f"version-{version}")["table"] == f"version-{version}"
    assert reads == ["version-1", "version-2", "version-3", "version-2"]


def test_analyses_last_added_stay_in_memory(analyzer: DraftAnalyzer, blobs: BlobStore, monkeypatch: pytest.MonkeyPatch
                                            ) -> None:
    put(blobs, 1)
    monkeypatch.setattr(drafts, "CACHED_ADVICE", 2)
    solved: list[Any] = []
    monkeypatch.setattr(drafts, "advise", lambda *query: (solved.append(query[2]), advise(*query))[1])
    for hero in ("lion", "sven", "lion", "viper", "sven", "viper", "lion"):
        assert ask(analyzer, dire=(hero,))["dire"] == [hero]
    assert solved == [("lion",), ("sven",), ("viper",), ("lion",)]


def test_analyses_are_separate_by_picks_bans_and_order(analyzer: DraftAnalyzer, blobs: BlobStore) -> None:
    put(blobs, 1)
    queries: list[dict[str, Any]] = [
        {"dire": ("lion",), "radiant": ("sven", "viper")}, {"radiant": ("sven",), "order": "RDDR"},
        {"dire": ("sven",)}, {"banned": ("sven",)}, {"dire": ("lion",), "banned": ("sven",)}, {"order": "RDRD"}, {}]
    leaves = DraftTableStore(blobs, RUN).read("version-1")
    for _ in range(2):
        for query in queries:
            expected = advise(leaves, query.get("radiant", ()), query.get("dire", ()), query.get("banned", ()),
                              query.get("order", "DRRD"))
            assert ask(analyzer, **query)["win"] == expected.win, query


@pytest.mark.parametrize("games", [0, 2, 3, 4, 6, 7])
def test_games_before_the_first_request_are_counted_once(
        analyzer: DraftAnalyzer, blobs: BlobStore, series: Series, monkeypatch: pytest.MonkeyPatch, games: int) -> None:
    monkeypatch.setattr(drafts, "PAGE", 3)
    put(blobs, 1)
    if games:
        series.extend("games", [GAME] * games)
    assert ask(analyzer)["games"] == games
    for more in (1, 3, 4):
        series.extend("games", [GAME] * more)
        games += more
        assert ask(analyzer)["games"] == games


def test_only_the_newest_games_count(analyzer: DraftAnalyzer, blobs: BlobStore, series: Series,
                                     monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafts, "PAGE", 3)
    monkeypatch.setattr(drafts, "EVIDENCE_GAMES", 6)
    put(blobs, 1)
    series.extend("games", [{"lineup": [[2], [3]]}] * 4 + [GAME] * 6)
    assert ask(analyzer)["games"] == 6


def test_calibration_reads_the_games_alone(analyzer: DraftAnalyzer, series: Series) -> None:
    record = {**GAME, "winner": "dire", "outcome": "selfplay", "version": 3, "win_probability": [0.6, 0.3]}
    assert analyzer.reliability().games == 0
    series.extend("games", [record, {**record, "version": 5}])
    found = analyzer.reliability()
    assert (found.games, found.first, found.last) == (2, 3, 5)
