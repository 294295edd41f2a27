"""Step buffer: packed and plain rows send equal requests and segments."""

import asyncio
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dota import packing
from dota.config import GameConfig
from dota.rewards import SIGNALS
from dota.spaces import Layout
from dota.vec_game import PACKED, Controller, VecGame
from five.clients import wire
from five.protos.v1 import tensors_pb2
from five.services.rollout.environment import LocalEnvironment
from five.services.rollout.step_buffer import SIDES, StepBuffer, split_team_rows
from rapid import codec
from rapid.packed_array import PackedArray

GAME = GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], start_seconds=-10.0)
LAYOUT = Layout(GAME)
GAMES, CAPACITY, STEPS = 3, 8, 20
SPARSE = ("shared", "private")


@dataclass
class FilledBuffer:
    """A step buffer and the games that fill it."""

    buffer: StepBuffer
    environment: LocalEnvironment

    @classmethod
    def of(cls, packed: bool) -> "FilledBuffer":
        games = VecGame(GAME, GAMES, seed=5, observations="packed" if packed else True)
        buffer = StepBuffer(LAYOUT.array_specs(), CAPACITY, GAMES, LAYOUT.heroes, len(SIGNALS),
                            PACKED if packed else ())
        return cls(buffer, LocalEnvironment(games))

    async def play(self) -> None:
        controllers = np.full((GAMES, SIDES), Controller.HARD, np.uint8)
        await self.environment.reset(np.arange(GAMES, dtype=np.int32), controllers, self.buffer.observation(0))
        for step in range(STEPS):
            row = self.buffer.row(step)
            await self.environment.step(self.buffer.actions[row], self.buffer.observation(step + 1))
            if step == STEPS - 3:
                again = np.array([2, 0], np.int32)
                await self.environment.reset(again, controllers[again], self.buffer.observation(step + 1))
        await self.environment.close()


def sent(arrays: Any, zstd: bool = False) -> bytes:
    message = tensors_pb2.TensorSet()
    wire.fill_tensor_set(message, {name: arrays[name] for name in LAYOUT.array_specs()}, LAYOUT.hash, SPARSE, zstd)
    return message.SerializeToString(deterministic=True)


@pytest.fixture(scope="module")
def rings() -> tuple[StepBuffer, StepBuffer]:
    codec.register(packing.pack_f16, packing.unpacked_f16, packing.pack_changes)
    both = (FilledBuffer.of(False), FilledBuffer.of(True))
    for kept in both:
        asyncio.run(kept.play())
    return both[0].buffer, both[1].buffer


@pytest.mark.parametrize("places", [[0, 1, 2, 3, 4, 5], [4], [5, 0, 3]])
def test_packed_buffer_sends_equal_requests(rings: tuple[StepBuffer, StepBuffer], places: list[int]) -> None:
    full, packed = rings
    for step in range(STEPS - CAPACITY + 1, STEPS + 1):
        at = np.array(places)
        for zstd in (False, True):
            assert sent(packed.request_observations(step, at), zstd) == sent(full.request_observations(step, at), zstd)
        part = np.array([len(places) - 1])  # as server pools select rows
        assert sent({n: a[part] for n, a in packed.request_observations(step, at).items()}) == sent(
            {n: a[part] for n, a in full.request_observations(step, at).items()})


def test_packed_buffer_sends_equal_segments(rings: tuple[StepBuffer, StepBuffer]) -> None:
    rows = rings[0].row_indices(STEPS - 5, 6)
    for game in range(GAMES):
        for side in range(SIDES):
            teams = [{name: array[rows] for name, array in buffer.team_arrays(game, side).items()} for buffer in rings]
            assert sent(teams[1]) == sent(teams[0])


def test_nonzero_reads_presence_bits(rings: tuple[StepBuffer, StepBuffer]) -> None:
    full, packed = rings
    rows: npt.NDArray[np.intp] = full.row_indices(STEPS - 4, 5)
    columns = np.arange(0, full.observations["shared"].shape[-1], 3)
    found = packed.nonzero("shared", rows, 1, 1, columns)
    np.testing.assert_array_equal(found, full.observations["shared"][rows, 1, 1][:, columns] != 0)
    np.testing.assert_array_equal(found, full.nonzero("shared", rows, 1, 1, columns))
    assert 0.05 < found.mean() < 0.95


def test_packed_buffer_is_smaller(rings: tuple[StepBuffer, StepBuffer]) -> None:
    full, packed = rings
    for name in SPARSE:
        held = sum(len(row) for row in packed.observations[name].reshape(-1).tolist())
        assert held < 0.5 * full.observations[name].nbytes


def test_request_of_all_sides_is_not_copied(rings: tuple[StepBuffer, StepBuffer]) -> None:
    full, _ = rings
    there = full.observations["shared"]
    every, some = np.arange(GAMES * SIDES), np.arange(GAMES * SIDES - 1)
    assert np.shares_memory(full.request_observations(STEPS, every)["shared"], there)
    assert not np.shares_memory(full.request_observations(STEPS, some)["shared"], there)


def test_rows_of_consecutive_steps_wrap_around() -> None:
    buffer = StepBuffer(LAYOUT.array_specs(), 4, 1, LAYOUT.heroes, len(SIGNALS))
    assert [buffer.row(step) for step in (0, 3, 4, 11)] == [0, 3, 0, 3]
    assert buffer.row_indices(6, 3).tolist() == [2, 3, 0]
    assert buffer.row_indices(5, 4).tolist() == [1, 2, 3, 0] and buffer.row_indices(5, 0).tolist() == []
    with pytest.raises(ValueError, match="5 steps exceed the capacity of 4"):
        buffer.row_indices(0, 5)


def test_new_buffer_is_empty() -> None:
    buffer = StepBuffer(LAYOUT.array_specs(), 4, 2, LAYOUT.heroes, len(SIGNALS), PACKED)
    lead = (4, 2, SIDES)
    assert {name: array.shape[:3] for name, array in buffer.observations.items()} == dict.fromkeys(
        LAYOUT.array_specs(), lead)
    assert (buffer.capacity, buffer.games, buffer.heroes) == (4, 2, LAYOUT.heroes)
    arrays = {"actions": ((LAYOUT.heroes, 6), np.int16), "logp": ((LAYOUT.heroes,), np.float32),
              "values": ((LAYOUT.heroes,), np.float32), "versions": ((), np.int32),
              "signals": ((LAYOUT.heroes, len(SIGNALS)), np.float32)}
    for name, (shape, dtype) in arrays.items():
        array = getattr(buffer, name)
        assert (array.shape, array.dtype) == ((*lead, *shape), dtype) and not array.any()
    assert (buffer.game_time.shape, buffer.game_time.dtype) == ((4, 2), np.float32) and not buffer.game_time.any()
    team = buffer.team_arrays(1, 1)
    assert set(team) == {*LAYOUT.array_specs(), "actions", "behaviour_logp", "behaviour_values", "versions"}
    for name, source in (("actions", "actions"), ("behaviour_logp", "logp"), ("behaviour_values", "values"),
                         ("versions", "versions")):
        getattr(buffer, source)[2, 1, 1] = 3
        assert (team[name][2] == 3).all() and not team[name][:2].any()


def test_packed_array_is_split_by_team() -> None:
    full = np.zeros((3, SIDES, 2, 5), np.float16)
    full[0, 1, 1, 4], full[2, 0, 0, 1:3] = 1.5, -2.0
    rows = split_team_rows(wire.pack(full))
    assert rows.shape == (3, SIDES)
    assert [bytes(row) for row in rows.reshape(-1)] == [packing.pack_f16(team) for team in full.reshape(6, 10)]
    for sides in (1, 3):
        with pytest.raises(ValueError, match=rf"shape \[2, {sides}, 5\]"):
            split_team_rows(wire.pack(np.ones((2, sides, 5), np.float16)))
    with pytest.raises(ValueError, match="no packed form of 4 rows of 5 values"):
        split_team_rows(PackedArray.of((2, SIDES, 5), bytes(2)))
