"""Games of a rollout while a change is annealed: variant by game id, configuration and records."""

from typing import Any

import pytest

from dota.config import GameConfig
from five.agent.anneal.variants import Variant, assign_variant
from five.services.rollout.anneal_assignment import NO_ANNEAL, AnnealAssignment
from five.services.rollout.metrics import VARIANT_GAME_SECONDS, VARIANT_GAMES, VARIANT_STATISTICS, RolloutMeter
from tests.services.counting import CountingGames, Versions
from tests.services.inference_server import InferenceServer
from tests.services.test_rollout import play

GAME = GameConfig(patch="7.19")


def document(**changes: Any) -> dict[str, Any]:
    return {"id": "patch", "overrides": {"patch": "7.21d"}, "base": 100, "began": 100,
            "ramp": {"start": 100, "length": 200}, **changes}


def test_variant_follows_game_id_and_share() -> None:
    annealing = AnnealAssignment(GAME)
    assert annealing.assign("a", 5) is NO_ANNEAL
    annealing.update(document())
    games = [f"{i:032x}" for i in range(500)]
    for version, share in ((100, 0.0), (150, 0.25), (900, 0.5)):
        drawn = [annealing.assign(game, version) for game in games]
        assert [d.name for d in drawn] == [assign_variant("patch/1", game, share) for game in games]
        assert all(d.trial == "patch/1" for d in drawn)
        assert all((d.config is None) == (d.name is Variant.OLD) for d in drawn)
        new = [d.config for d in drawn if d.config is not None]
        assert abs(len(new) / 500 - share) < 0.08 and all(r == GameConfig(patch="7.21d") for r in new)
    # Another attempt assigns other games; a finished or removed anneal assigns none.
    annealing.update(document(attempt=2, state="holding", ramp={"start": 100, "length": 200, "share": 0.5}))
    assert [annealing.assign(g, 900).name for g in games] != [d.name for d in drawn]
    for over in (document(state="promoted"), document(state="failed"), None):
        annealing.update(document())
        annealing.update(over)
        assert annealing.assign("a", 900) is NO_ANNEAL


@pytest.mark.parametrize(("overrides", "said"), [
    ({"patch": "6.84"}, "invalid game configuration"), ({"observation": {"pickups": 2}}, "needs surgery"),
    ({"new_key": 1}, "invalid game configuration")])
def test_invalid_anneal_keeps_the_previous_one(overrides: dict[str, Any], said: str) -> None:
    annealing = AnnealAssignment(GAME)
    annealing.update(document())
    with pytest.raises(ValueError, match=said):
        annealing.update(document(overrides=overrides, revision=2))
    assert annealing.assign("a", 10_000).trial == "patch/1"


async def test_games_and_segments_carry_their_variant() -> None:
    annealing = AnnealAssignment(GAME)
    annealing.update(document(state="holding", ramp={"start": 100, "length": 200, "share": 0.5}))
    games = CountingGames([[9], [13], [11], [7]])
    async with InferenceServer(Versions(0)) as server:
        done = await play(games, 120, [server], draw=annealing.assign)
    assert len(done.records) > 20
    for record in done.records:
        assert record["variant"] == assign_variant("patch/1", record["game"], 0.5) and record["anneal"] == "patch/1"
    variants = {record["variant"] for record in done.records}
    assert variants == {"old", "new"} == done.variants
    # Each slot plays its game's variant.
    for place, rules in games.rules.items():
        drawn = done.group._records[place].variant
        assert rules == drawn.config and (rules is None) == (drawn.name == "old")
    before = {name: VARIANT_GAMES.labels(name, "selfplay")._value.get() for name in variants}
    meter = RolloutMeter()
    for record in done.records:
        meter.game(record)
    counted = {name: VARIANT_GAMES.labels(name, "selfplay")._value.get() - before[name] for name in variants}
    assert sum(counted.values()) == len(done.records) and min(counted.values()) > 0
    assert VARIANT_GAME_SECONDS.labels("new")._value.get() > 0
    assert VARIANT_STATISTICS.labels("old", "net_worth")._value.get() >= 0


async def test_no_variant_without_an_anneal() -> None:
    async with InferenceServer(Versions(0)) as server:
        done = await play(CountingGames([[9], [13]]), 60, [server])
    assert done.variants == {""} and all("variant" not in record for record in done.records)
