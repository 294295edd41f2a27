"""Packed observations equal the packed form of the full arrays, through resets, snapshots and restarts."""

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dota.config import GameConfig
from dota.packing import join_f16, pack_f16, split_f16
from dota.vec_game import PACKED, TEAMS, Controller, VecGame
from tests.dota.watching import duel

ROWS = st.integers(0, 40).flatmap(lambda n: st.lists(st.lists(st.one_of(st.just(0), st.integers(1, 65535)),
                                                              min_size=n, max_size=n), max_size=12))


class Twins:
    """The same games twice: with full and with packed observations."""

    def __init__(self, game: Mapping[str, Any], threads: int = 1, games: int = 3) -> None:
        config = GameConfig.model_validate(game)
        self.full = VecGame(config, games, seed=3, threads=threads)
        self.packed = VecGame(config, games, seed=3, threads=threads, observations="packed")
        self.both = (self.full, self.packed)
        for games_of in self.both:
            games_of.controllers[:] = Controller.HARD

    def check(self) -> None:
        """Raise AssertionError when an array of the two differs."""
        assert self.packed.packed == PACKED and not set(PACKED) & set(self.packed.obs)
        assert set(PACKED) | set(self.packed.obs) == set(self.full.obs)
        for name, array in self.packed.obs.items():
            np.testing.assert_array_equal(array, self.full.obs[name], err_msg=name)
        for name in PACKED:
            full = self.full.obs[name].reshape(self.full.games * TEAMS, -1)
            rows = self.packed.packed_obs(name)
            assert rows == [pack_f16(row) for row in full], name
            assert join_f16(rows, full.shape[1]) == pack_f16(full), name
            assert self.packed.packed_obs(name, [2, 0]) == rows[4:6] + rows[:2]


GAMES = {
    "5v5": {},
    "turned, fields left out": {"patch": "7.19",
                                "observation": {"mirror_dire": True, "omit": ["minimap", "units.vector"]}},
    "every eighth frame": {"frameskip": 8, "hide_unseen": True},
    "1v1": duel().model_dump(),
}


@pytest.mark.parametrize("name", GAMES)
def test_packed_as_the_full_arrays_would_be(name: str) -> None:
    twins = Twins(GAMES[name])
    twins.check()
    for step in range(330):
        for games in twins.both:
            games.step()
        if step % 11 == 0:
            twins.check()
    twins.check()
    at = twins.full.snapshot(1)
    for games in twins.both:
        games.reset([0])
    twins.check()
    for games in twins.both:
        games.restore(2, at)
    twins.check()
    for games in twins.both:
        games.step(which=[1, 2])
    twins.check()


def test_threads_pack_the_same() -> None:
    twins = Twins({}, threads=3, games=9)
    alone = Twins({}, games=9)
    for _ in range(40):
        for games in (*twins.both, *alone.both):
            games.step()
    twins.check()
    for name in PACKED:
        assert twins.packed.packed_obs(name) == alone.packed.packed_obs(name)


def test_steps_by_commands_are_packed_too() -> None:
    twins = Twins({})
    for _ in range(60):
        twins.full.step()
        commands = np.concatenate([twins.full.commands(i) for i in range(3)])
        twins.packed.step_commands(commands)
    twins.check()
    assert [twins.full.hash(i) for i in range(3)] == [twins.packed.hash(i) for i in range(3)]
    for wrong in (commands[:2], commands.astype(np.int32)):
        with pytest.raises(ValueError, match="commands"):
            twins.packed.step_commands(wrong)
    with pytest.raises(ValueError, match="out of range"):
        twins.packed.step_commands(np.full_like(commands, 1000))


def test_only_packed_games_have_packed_rows() -> None:
    for observations in (True, False):
        games = VecGame(duel(), 1, observations=observations)
        assert games.packed == ()
        with pytest.raises(ValueError, match="packed arrays: none"):
            games.packed_obs("shared")
    games = VecGame(duel(), 1, observations="packed")
    with pytest.raises(ValueError, match="'available' is not packed; packed arrays: shared, private"):
        games.packed_obs("available")
    with pytest.raises(IndexError):
        games.packed_obs("shared", [1])


@settings(max_examples=300, deadline=None)
@given(ROWS)
def test_joined_rows_are_the_packed_form_of_all(rows: list[list[int]]) -> None:
    arrays = [np.array(row, np.uint16) for row in rows]
    whole = np.concatenate([*arrays, np.zeros(0, np.uint16)])
    values = len(rows[0]) if rows else 0
    packed = [pack_f16(a) for a in arrays]
    assert join_f16(packed, values) == pack_f16(whole)
    assert split_f16(pack_f16(whole), len(rows), values) == packed


@pytest.mark.parametrize("n", [63, 64, 65, 200, 1883, 12686])
def test_long_rows_join_at_unaligned_bits(n: int) -> None:
    rng = np.random.default_rng(n)
    full = (rng.integers(0, 2, (7, n)) * rng.integers(1, 2**16, (7, n))).astype(np.uint16)
    full[3] = 0
    full[4] = 1
    assert join_f16([pack_f16(row) for row in full], n) == pack_f16(full)
    assert split_f16(pack_f16(full), 7, n) == [pack_f16(row) for row in full]


def test_rows_of_another_length_are_refused(core: ModuleType) -> None:
    row = pack_f16(np.arange(11, dtype=np.uint16))
    assert core.join16([], 11) == b""
    for wrong in ([row[:1]], [row, b""], [pack_f16(np.full(12, 5, np.uint16))]):
        with pytest.raises(ValueError, match="not a packed array of 11 values"):
            join_f16(wrong, 11)


def test_split_refuses_malformed_packed_rows() -> None:
    whole = pack_f16(np.arange(22, dtype=np.uint16))  # 3 bytes of bits, of which two are of nothing, and 21 values
    assert len(split_f16(whole, 2, 11)) == 2
    behind = bytes([*whole[:2], whole[2] | 0x40, *whole[3:]])
    for data, rows, values in ((b"", 2, 11), (whole[:2], 2, 11), (whole[:-2], 2, 11), (whole + b"\0\0", 2, 11),
                               (behind + b"\1\0", 2, 11), (whole, 2, 10), (whole, 3, 11), (whole, 1, 11),
                               (whole, 2**40, 2**40), (b"x", 3, 0)):
        with pytest.raises(ValueError, match=f"no packed form of {rows} rows of {values} values"):
            split_f16(data, rows, values)
