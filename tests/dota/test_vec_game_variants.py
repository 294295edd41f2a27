"""Games of several configurations in one vector: each follows its own, and the first one is unaffected by the others.
"""

import numpy as np
import pytest

from dota.config import GameConfig
from dota.playback import play
from dota.vec_game import MAX_VARIANTS, Controller, VecGame
from tests.dota.watching import duel


def played(vec: VecGame, steps: int = 120) -> list[int]:
    vec.controllers[:] = Controller.RANDOM
    for _ in range(steps):
        vec.step()
    return [vec.hash(i) for i in range(vec.games)]


def test_each_place_plays_its_variant_as_if_alone() -> None:
    one, other = duel(), duel(patch="7.19", start_seconds=-20.0)
    alone = [played(VecGame(config, 4, seed=5)) for config in (one, other)]
    assert not set(alone[0]) & set(alone[1])
    for threads in (1, 3):
        mixed = VecGame(one, 4, seed=5, threads=threads, others=[other])
        assert [mixed.variant(i) for i in range(4)] == [0] * 4
        assert played(mixed) == alone[0]
        mixed = VecGame(one, 4, seed=5, threads=threads, others=[other])
        # A place counts its episodes in any variant: this reset begins its second one, there and alone.
        mixed.reset(variants=[0, 1, 0, 1])
        again = [VecGame(config, 4, seed=5) for config in (one, other)]
        for vec in again:
            vec.reset()
        first, second = (played(vec) for vec in again)
        assert played(mixed) == [first[0], second[1], first[2], second[3]]


def test_a_place_keeps_its_variant_until_a_reset_names_another() -> None:
    vec = VecGame(duel(), 3, seed=1, others=[duel(start_seconds=-30.0), duel(start_seconds=-40.0)])
    vec.reset(variants=[2, 0, 1])
    np.testing.assert_allclose(vec.game_time, [-40.0, duel().start_seconds, -30.0], atol=0.01)
    vec.reset([0, 1])
    assert [vec.variant(i) for i in range(3)] == [2, 0, 1]
    vec.reset_as(0, 7)
    assert vec.variant(0) == 0
    vec.reset_as(0, 7, variant=1)
    assert vec.variant(0) == 1 and vec.game_time[0] == pytest.approx(-30.0)


def test_a_recording_and_a_snapshot_know_their_variant(tmp_path) -> None:
    one, other = duel(), duel(patch="7.19")
    vec = VecGame(one, 2, seed=4, others=[other])
    vec.reset(variants=[0, 1])
    tape = vec.record(1)
    hashes = played(vec)
    assert tape.config.patch == "7.19"
    tape.save(tmp_path / "a.replay", hashes[1])
    last = [game.hash(0) for game in play(type(tape).load(tmp_path / "a.replay"))][-1]  # raises if it ends otherwise
    assert last == hashes[1]

    taken = vec.snapshot(1)
    back = VecGame(one, 1, seed=0, others=[other])
    back.restore(0, taken)
    assert back.variant(0) == 1 and back.hash(0) == hashes[1]
    with pytest.raises(ValueError, match="snapshot"):
        VecGame(one, 1).restore(0, taken)


def test_an_action_of_another_patch_does_nothing() -> None:
    """A command that exists only in 7.21d acts as noop in a game of 7.19."""
    ends = []
    for action in (1, next(a.id for a in VecGame(duel(), 1).layout.actions if a.name == "lich_frost_shield")):
        vec = VecGame(duel(), 1, seed=4, others=[duel(patch="7.19")])
        vec.reset(variants=[1])
        rows = np.zeros((10, 8), np.int16)
        rows[:, 2:6:2] = -1
        rows[0, 0] = action
        before = [unit["x"] for unit in vec.spectate(0)["units"] if unit["hero"] >= 0]
        for _ in range(5):
            vec._core.step_commands([0], rows)
        ends.append((before, [unit["x"] for unit in vec.spectate(0)["units"] if unit["hero"] >= 0]))
    assert ends[0] == ends[1]


def test_a_variant_may_come_while_games_go_on() -> None:
    vec, twin = VecGame(duel(), 2, seed=6), VecGame(duel(), 2, seed=6)
    played(vec, 40)
    later = duel(patch="7.19", start_seconds=-15.0)
    assert vec.add_variant(later) == 1 == vec.add_variant(later) and vec.add_variant(duel()) == 0
    vec.reset([1], variants=[1])
    assert vec.variant(1) == 1 and vec.game_time[1] == pytest.approx(-15.0)
    assert played(vec, 80)[0] == played(twin)[0]  # its neighbour never noticed
    for k in range(MAX_VARIANTS - 2):
        vec.add_variant(duel(max_game_seconds=100.0 + k))
    with pytest.raises(ValueError, match="the games have 64 variants.*restarted"):
        vec.add_variant(duel(max_game_seconds=50.0))
    with pytest.raises(ValueError, match="layout"):
        vec.add_variant(duel(observation={}))


def test_incompatible_variants_are_refused() -> None:
    with pytest.raises(ValueError, match="the variant has layout"):
        VecGame(duel(), 1, others=[GameConfig(hero_pool=["nevermore", "sniper", "lion", "viper", "sven"])])
    vec = VecGame(duel(), 2, seed=1, others=[duel(patch="7.19")])
    before = [vec.hash(0), vec.hash(1)]
    with pytest.raises(IndexError, match="variant 2 of 2"):
        vec.reset([0], variants=[2])
    with pytest.raises(ValueError, match="variants do not fit"):
        vec.reset([0], variants=[0, 1])
    assert [vec.hash(0), vec.hash(1)] == before
