"""Vector of games: determinism, subsets, snapshots, and clear errors for invalid input."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import dota
from dota import registry
from dota.config import GameConfig, ObservationConfig
from dota.spaces import ActionPart
from dota.tables import hero_ids
from dota.vec_game import STATS, Controller, VecGame, Winner
from tests.dota.watching import duel, field, hero_unit, place

SMALL = ObservationConfig(allied_creeps=4, neutral_creeps=2, buildings=4, wards=0, pickups=2, minimap=4, nearby_map=4,
                          passability=4)


def brawl(**changes: Any) -> GameConfig:
    return GameConfig.model_validate({"heroes_per_team": 2, "start_seconds": -10.0, "observation": SMALL} | changes)


def play(threads: int, steps: int = 250, games: int = 5) -> tuple[list[int], list[np.ndarray]]:
    vec = VecGame(brawl(), games, seed=11, threads=threads)
    vec.controllers[:, 1] = Controller.SCRIPTED
    rng = np.random.default_rng(0)
    observed = []
    for step in range(steps):
        actions = rng.integers(-1, 9, (games, 2, 2, 6)).astype(np.int16)
        vec.step(actions)
        if step % 50 == 49:
            observed += [vec.obs["shared"].copy(), vec.obs["target_mask"].copy(), vec.signals.copy()]
    return [vec.hash(i) for i in range(games)], observed


def test_the_buyer_stocks_the_configured_consumables() -> None:
    kept = {"tango": 2, "salve": 3, "clarity": 0, "town_portal": 4, "until_seconds": 300.0}
    vec = VecGame(brawl(consumables=kept, start_seconds=0.0), 1, seed=3)
    told = field(vec, "allied_heroes", "purchase_settings")[0]
    np.testing.assert_allclose(told[:5], [2, 3, 0, 4, 5 / 10], atol=0.01)
    with pytest.raises(ValueError, match="consumables.salve"):
        brawl(consumables={"salve": -1})


def test_same_games_on_any_number_of_threads() -> None:
    reference, arrays = play(1)
    assert len(set(reference)) == len(reference)  # the games differ from each other
    for threads in (2, 4):
        hashes, other = play(threads)
        assert hashes == reference
        for a, b in zip(arrays, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_seed_determines_the_game() -> None:
    a, b, c = (VecGame(brawl(), 2, seed=s) for s in (5, 5, 6))
    for vec in (a, b, c):
        vec.controllers[:] = Controller.RANDOM
        for _ in range(60):
            vec.step()
    assert [a.hash(0), a.hash(1)] == [b.hash(0), b.hash(1)]
    assert a.hash(0) != c.hash(0) and a.hash(0) != a.hash(1)


def test_episodes_of_a_slot_differ_and_repeat() -> None:
    a, b = VecGame(brawl(), 1, seed=5), VecGame(brawl(), 1, seed=5)
    first = a.seed(0)
    a.reset()
    b.reset()
    assert a.seed(0) == b.seed(0) != first
    assert a.hash(0) == b.hash(0)


def test_a_subset_of_games_steps_alone() -> None:
    vec = VecGame(brawl(), 4, seed=1)
    before = [vec.hash(i) for i in range(4)]
    shared = vec.obs["shared"].copy()
    vec.step(which=[1, 3])
    after = [vec.hash(i) for i in range(4)]
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, False, True, False]
    np.testing.assert_array_equal(vec.obs["shared"][[0, 2]], shared[[0, 2]])
    assert vec.game_time[1] > vec.game_time[0]


def test_step_order_of_groups_does_not_matter() -> None:
    """Two groups in flight give the same games as one call."""
    a, b = VecGame(brawl(), 4, seed=1), VecGame(brawl(), 4, seed=1)
    for vec in (a, b):
        vec.controllers[:] = Controller.SCRIPTED
    for _ in range(40):
        a.step()
        b.step(which=[2, 3])
        b.step(which=np.array([0, 1]))
    assert [a.hash(i) for i in range(4)] == [b.hash(i) for i in range(4)]


def test_threads_of_the_caller_may_step_groups_at_once() -> None:
    """Two Python threads that each step half of the games get the same as one thread."""
    import threading

    a, b = VecGame(brawl(), 4, seed=1, threads=2), VecGame(brawl(), 4, seed=1)
    for vec in (a, b):
        vec.controllers[:] = Controller.SCRIPTED

    def run(which: list[int]) -> None:
        for _ in range(60):
            a.step(which=which)

    threads = [threading.Thread(target=run, args=(which,)) for which in ([0, 1], [2, 3])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _ in range(60):
        b.step()
    assert [a.hash(i) for i in range(4)] == [b.hash(i) for i in range(4)]


def test_lineups_are_drawn_from_the_pool_per_team() -> None:
    vec = VecGame(brawl(), 64, seed=3)
    pool = {registry.load().heroes.index(hero) for hero in vec.config.hero_pool}
    assert {int(h) for h in vec.lineups.ravel()} == pool
    assert all(len(set(team)) == 2 for game in vec.lineups.tolist() for team in game)
    assert any(set(g[0]) != set(g[1]) for g in vec.lineups.tolist())
    mirrored = VecGame(brawl(mirror_match=True), 16, seed=3)
    np.testing.assert_array_equal(mirrored.lineups[:, 0], mirrored.lineups[:, 1])
    assert len({tuple(g[0]) for g in mirrored.lineups.tolist()}) > 3


def test_lineups_can_be_fixed() -> None:
    vec = VecGame(brawl(), 3, seed=3)
    row = vec.lineup([["sven", "lion"], ["viper", "sniper"]])
    vec.reset([1], row[None])
    assert [vec.heroes[i] for i in vec.lineups[1].ravel()] == ["sven", "lion", "viper", "sniper"]
    names = [u["name"] for u in vec.spectate(1)["units"] if u["hero"] >= 0]
    assert names == [f"npc_dota_hero_{h}" for h in ("sven", "lion", "viper", "sniper")]


def test_restored_snapshot_continues_identically() -> None:
    vec = VecGame(brawl(), 2, seed=8)
    vec.controllers[:] = Controller.RANDOM
    for _ in range(120):
        vec.step()
    taken, h = vec.snapshot(0), vec.hash(0)
    seen = {k: a[0].copy() for k, a in vec.obs.items()}
    for _ in range(80):
        vec.step()
    later = vec.hash(0)
    vec.restore(0, taken)
    assert vec.hash(0) == h
    for name, array in seen.items():
        np.testing.assert_array_equal(vec.obs[name][0], array)
    for _ in range(80):
        vec.step(which=[0])
    assert vec.hash(0) == later
    # Another instance continues identically too.
    other = VecGame(brawl(), 1, seed=0)
    other.controllers[:] = Controller.RANDOM
    other.restore(0, taken)
    for _ in range(80):
        other.step()
    assert other.hash(0) == later


@pytest.mark.parametrize("damage", ["short", "long", "flipped", "empty", "foreign"])
def test_damaged_snapshots_change_nothing(damage: str) -> None:
    vec = VecGame(brawl(), 1, seed=8)
    vec.step()
    h, taken = vec.hash(0), bytearray(vec.snapshot(0))
    if damage == "flipped":
        taken[len(taken) // 2] ^= 1
    bad = {"short": bytes(taken[:-1]), "long": bytes(taken) + b"\0", "flipped": bytes(taken), "empty": b"",
           "foreign": VecGame(duel(), 1).snapshot(0)}[damage]
    with pytest.raises(ValueError, match="snapshot"):
        vec.restore(0, bad)
    assert vec.hash(0) == h


def test_snapshot_with_impossible_memory_of_bots_is_refused(core: Any) -> None:
    """A checksum protects against damage, not against another program's states."""
    vec = VecGame(brawl(), 1, seed=8)
    vec.step()
    h, taken = vec.hash(0), bytearray(vec.snapshot(0))
    taken[-136:] = b"\xff" * 136  # the times that the Dire's bots remember, and the bots' random state: NaN
    with pytest.raises(ValueError, match="snapshot: the bots' memory of team 1"):
        vec.restore(0, core.sealed(bytes(taken)))
    assert vec.hash(0) == h


def test_signals_are_of_the_last_step_only() -> None:
    vec = VecGame(duel(), 1, seed=1)
    vec.controllers[:] = Controller.SCRIPTED
    total = np.zeros_like(vec.signals)
    for _ in range(900):
        vec.step()
        total += vec.signals
    gold = 4  # dota.rewards.SIGNALS: gold
    earned = total[0, :, 0, gold]
    assert (earned > 100).all()
    assert (vec.signals[0, :, 0, gold] < 100).all()
    last_hits = total[0, :, 0, 9]
    np.testing.assert_allclose(last_hits, vec.stats[0, :, 0, STATS.index("last_hits")])


def test_finished_game_stays_until_it_is_reset() -> None:
    vec = VecGame(duel(max_game_seconds=2.0), 2, seed=1)
    for _ in range(20):
        vec.step()
    assert vec.winner.tolist() == [Winner.DRAW, Winner.DRAW]
    h, time = vec.hash(0), vec.game_time[0]
    vec.step()
    assert vec.hash(0) == h and vec.game_time[0] == time and not vec.signals.any()
    vec.reset([0])
    assert vec.winner.tolist() == [Winner.RUNNING, Winner.DRAW]
    assert vec.game_time.tolist()[0] == 0


def test_auto_reset_starts_the_next_game() -> None:
    vec = VecGame(duel(max_game_seconds=2.0), 2, seed=1, auto_reset=True)
    ends = 0
    for _ in range(60):
        vec.step()
        ends += int((vec.winner == Winner.DRAW).sum())
    assert ends == 6  # 15 steps a game and one for the reset


def test_kills_end_a_duel_and_pay_the_winner() -> None:
    vec = VecGame(duel(kills_to_win=1), 1, seed=1)
    place(vec, hero_unit(vec, 1), -6300, -6300)
    wins = np.zeros(2)
    for _ in range(200):
        vec.step()
        wins += vec.signals[0, :, 0, 0]
        if vec.winner[0]:
            break
    assert vec.winner[0] == Winner.RADIANT and wins.tolist() == [1, 0]
    assert vec.stats[0, 1, 0, STATS.index("deaths")] == 1


def test_unknown_hero_error_suggests_the_nearest() -> None:
    config = GameConfig(hero_pool=["sven", "nevermor", "lion", "viper", "sniper"])
    with pytest.raises(ValueError, match=r"hero_pool\[1\]: 'nevermor' is not in patch 7.21d; did you mean 'nevermore'"):
        VecGame(config, 1)


def test_hero_with_unbuilt_effects_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unsupported effects are refused when a game is created, never omitted silently."""
    class Lacking:
        def __init__(self, tables: Any) -> None:
            self.heroes = tables.heroes

        def missing_primitives(self, hero: str) -> list[str]:
            return ["warp"] if hero.endswith("lion") else []

    from dota import tables

    real = tables.load_tables("7.21d")
    monkeypatch.setattr(tables, "load_tables", lambda patch: Lacking(real))
    with pytest.raises(ValueError, match=r"hero_pool\[2\]: 'lion' is not supported.*warp"):
        hero_ids(GameConfig())


def test_wrong_arrays_are_refused() -> None:
    vec = VecGame(brawl(), 2, seed=1)
    h = vec.hash(0)
    good = np.zeros((2, 2, 2, len(ActionPart)), np.int16)
    with pytest.raises(ValueError, match=r"actions has shape \(2, 2, 2, 5\); expected \(2, 2, 2, 6\)"):
        vec.step(good[..., :5])
    with pytest.raises(ValueError, match="actions must be a numpy array of int16, not int64"):
        vec.step(good.astype(np.int64))
    with pytest.raises(ValueError, match="not list"):
        vec.step(good.tolist())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="named twice"):
        vec.step(good, which=[0, 0])
    with pytest.raises(IndexError, match="game 2 of 2"):
        vec.step(good, which=[2])
    with pytest.raises(ValueError, match="lineups has shape"):
        vec.reset(lineups=np.zeros((1, 2, 2), np.int16))
    with pytest.raises(ValueError, match="hero"):
        vec.reset([0], np.full((1, 2, 2), 999, np.int16))
    with pytest.raises(ValueError, match=r"lineup\[0\]\[1\]: 'bob'"):
        vec.lineup([["sven", "bob"], ["lion", "viper"]])
    vec.controllers[0, 0] = 77
    with pytest.raises(ValueError, match="no controller 77"):
        vec.step(good)
    assert vec.hash(0) == h
    with pytest.raises(ValueError, match="at least 1"):
        VecGame(brawl(), 0)


def test_non_contiguous_actions_are_accepted() -> None:
    a, b = VecGame(brawl(), 2, seed=1), VecGame(brawl(), 2, seed=1)
    actions = np.random.default_rng(1).integers(0, 9, (6, 2, 2, 2)).astype(np.int16)
    for _ in range(10):
        a.step(np.moveaxis(actions, 0, -1))
        b.step(np.ascontiguousarray(np.moveaxis(actions, 0, -1)))
    assert a.hash(0) == b.hash(0)


def test_without_observations() -> None:
    vec = VecGame(brawl(), 2, seed=8, observations=False)
    full = VecGame(brawl(), 2, seed=8)
    for v in (vec, full):
        v.controllers[:] = Controller.SCRIPTED
        for _ in range(50):
            v.step()
    assert vec.obs == {} and vec.hash(1) == full.hash(1)
    np.testing.assert_array_equal(vec.stats, full.stats)


def test_randomisation_is_seen_in_the_observation() -> None:
    plain = VecGame(duel(), 8, seed=4)
    varied = VecGame(duel(randomisation={"stats": 0.2, "gold": 0.3}), 8, seed=4)
    hp = [float(field(v, "units", "max_hp", index=i)[0, 0]) for v in (plain, varied) for i in range(8)]
    assert len(set(hp[:8])) == 1 and len(set(hp[8:])) > 4


def test_one_game_is_the_same_game() -> None:
    game = dota.Game(brawl(), seed=21, lineup=[["sven", "lion"], ["viper", "sniper"]])
    assert [game._vec.heroes[i] for i in game.lineup.ravel()] == ["sven", "lion", "viper", "sniper"]
    assert game.obs["shared"].shape == (2, game.layout.shared)
    again = dota.Game(brawl(), seed=21, lineup=[["sven", "lion"], ["viper", "sniper"]])
    for g in (game, again):
        g.controllers[:] = Controller.SCRIPTED
        for _ in range(30):
            g.step()
    assert game.hash() == again.hash() and game.winner is Winner.RUNNING and game.time == pytest.approx(-6)
    snapshot = game.snapshot()
    game.step()
    game.restore(snapshot)
    assert game.hash() == again.hash()
    with pytest.raises(ValueError, match="shape"):
        game.step(np.zeros((1, 2, 2, 6), np.int16))
    with pytest.raises(ValueError, match="2 teams of 2 heroes"):
        dota.Game(brawl(), lineup=[["sven"], ["lion"]])


def test_numpy_seeds_are_those_of_python() -> None:
    seed = np.random.default_rng(5).integers(2**62)
    assert dota.Game(brawl(), seed).hash() == dota.Game(brawl(), int(seed)).hash()
    one, other = VecGame(brawl(), 1, seed), VecGame(brawl(), 1, int(seed))
    assert one.hash(0) == other.hash(0)
    one.branch(0, np.uint64(2**63))
    other.branch(0, 2**63)
    assert one.hash(0) == other.hash(0)
    with pytest.raises(TypeError, match="float"):
        VecGame(brawl(), 1, 1.5)  # type: ignore[arg-type]


def test_dota_imports_without_its_core() -> None:
    """An image that only needs shapes has no compiled core."""
    import subprocess
    import sys

    code = ("import sys; sys.modules['dota._core'] = None\n"
            "import dota, dota.spaces, dota.config; dota.spaces.Layout(dota.config.GameConfig())")
    path = next(p for p in sys.path if p.endswith("libs"))
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": path})
    with pytest.raises(AttributeError, match="no attribute 'Gmae'"):
        dota.Gmae  # noqa: B018


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda games: pickle.loads(pickle.dumps(games))])  # noqa: S301
def test_copy_continues_like_the_original(copied):
    """Through the end of a game and into the next one, with equal arrays."""
    config = GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], start_seconds=-1,
                        max_game_seconds=2)
    games = VecGame(config, 2, seed=5, auto_reset=True)
    games.controllers[:] = Controller.SCRIPTED
    for _ in range(40):
        games.step()
    games.reset([1])
    games.step()
    other = copied(games)
    for name in ("signals", "stats", "winner", "game_time", "lineups", "controllers"):
        assert np.array_equal(getattr(games, name), getattr(other, name)), name
    for _ in range(40):
        games.step()
        other.step()
        assert [games.hash(i) for i in range(2)] == [other.hash(i) for i in range(2)]
    assert all(np.array_equal(games.obs[name], other.obs[name]) for name in games.obs)
