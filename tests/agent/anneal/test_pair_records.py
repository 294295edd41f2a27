"""Stored form of the guard's pairs: keys, seeds and values."""

import pytest

from five.agent.anneal.guard import Pair
from five.agent.anneal.pair_records import pair_key, pair_seed, pair_to_json, parse_pairs
from five.agent.anneal.variants import Variant

PAIR = Pair(Variant.NEW, 12, 340, 0.25, (1.0, -1.0))


def test_stored_pairs_of_an_attempt_are_read_back() -> None:
    rows = {pair_key("patch/2", PAIR.rule, PAIR.number): pair_to_json(PAIR),
            pair_key("patch/1", Variant.OLD, 0): pair_to_json(PAIR),
            pair_key("patch/22", Variant.OLD, 0): pair_to_json(PAIR)}
    assert parse_pairs(rows, "patch/2") == [PAIR] and parse_pairs(rows, "patch") == []
    assert next(iter(rows)) == "patch/2/new/12"
    assert pair_to_json(PAIR) == {"version": 340, "share": 0.25, "results": [1.0, -1.0]}


ROW = pair_to_json(PAIR)


@pytest.mark.parametrize(("name", "row"), [
    ("patch/2/new/x", ROW), ("patch/2/newest/1", ROW), ("patch/2", ROW), ("patch/2/new/1", None),
    ("patch/2/new/1", {**ROW, "results": [1.0]}), ("patch/2/new/1", {**ROW, "share": "much"}),
    ("patch/2/new/1", {"results": [1.0, 1.0]})])
def test_damaged_pair_is_named(name: str, row: object) -> None:
    with pytest.raises(ValueError, match=f"the guard's pair '{name}' is damaged"):
        parse_pairs({name: row}, "patch/2")
    if name.count("/") == 3:
        assert parse_pairs({name: row}, "patch/1") == [], "rows of another attempt are not read"


def test_seed_depends_on_the_attempt_and_the_number() -> None:
    seeds = {pair_seed(trial, number) for trial in ("a/1", "a/2", "b/1") for number in range(50)}
    assert len(seeds) == 150 and all(0 <= seed < 1 << 63 for seed in seeds)
    assert max(seeds) > 1 << 62, "63 bits are used"
    # A fixed value, because a restarted evaluator continues with the seeds of its predecessor.
    assert pair_seed("patch/1", 0) == 461584536816651711


@pytest.mark.parametrize(("results", "score"), [((1.0, -1.0), 0.0), ((1.0, 0.0), 0.5), ((-1.0, -1.0), -1.0)])
def test_score_is_the_mean_result(results: tuple[float, float], score: float) -> None:
    assert PAIR._replace(results=results).score == score
