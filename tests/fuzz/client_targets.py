"""Targets of the bytes that a Dota 2 client sends."""

import functools
from random import Random

import numpy as np

from dota.client_state import ClientGame, read_world_state
from dota.play import InteractiveGame
from dota.vec_game import Controller
from tests.dota.client_frames import Value, field, frame, message, unit, vector
from tests.fuzz.message_targets import GAME
from tests.fuzz.mutators import mutate_bytes
from tests.fuzz.targets import Target, join_messages, split_messages


def world_states() -> list[bytes]:
    """Return frames that hold every message."""
    shot = message((1, 2049), (5, vector(1.0, 2.0)), (6, 900), (8, 1), (9, 6))
    tower = unit((49, 1025), (92, message((1, "modifier_fountain_glyph"), (5, 2.5))), handle=2049,
                 name="npc_dota_goodguys_tower1_mid")
    hero = unit((90, message((1, 7), (2, 5059), (3, 0), (6, 1), (12, 1.5))), (91, message((2, 44), (3, 0))), (93, shot))
    place = vector(100.0, -200.0)
    lists = ((12, message((1, 30), (2, place))), (13, message((1, 5), (2, place), (3, 1))),
             (14, message((1, 0), (2, place), (3, 2.0))), (15, message((2, 1025), (5, 5059), (6, place), (7, place))),
             (16, message((1, place), (2, 1025), (5, 5059), (6, 300))), (23, message((1, 0))),
             (24, message((1, 9), (2, 1), (4, place))))
    return [frame(), frame(*lists, units=(hero, tower))]


def mutate_world_state(data: bytes, random: Random) -> bytes:
    """Change the bytes, or append a field of any number and kind."""
    if random.random() < 0.5:
        return mutate_bytes(data, random)
    values: list[Value] = [random.randrange(1 << 40), random.uniform(-1e9, 1e9), "text", data[:random.randrange(40)]]
    return data + field(random.randrange(1, 200), random.choice(values))


def decode_world_state(data: bytes) -> None:
    """Decode a frame; damaged ones are refused with ValueError."""
    read_world_state(data)


@functools.cache
def played_frames() -> list[bytes]:
    """Return frames of a simulated game, several in one input."""
    game = InteractiveGame(GAME, 3)
    game.controllers[:] = Controller.SCRIPTED
    found = []
    for _ in range(8):
        for _ in range(20):
            game.step()
        found.append(game.world_state(0))
    return [join_messages(found[:2]), join_messages(found[4:6]), join_messages(found[-1:])]


def mutate_frames(data: bytes, random: Random) -> bytes:
    """Change the frames of an input one by one, or their order."""
    frames = [mutate_world_state(frame, random) if random.random() < 0.7 else frame for frame in split_messages(data)]
    random.shuffle(frames)
    return join_messages(frames)


def decode_frames(data: bytes) -> None:
    """Take frames in a game; what it makes of them is finite, and it chooses from it."""
    game = ClientGame(GAME)
    reasons = [game.update(frame) for frame in split_messages(data, 4)]
    if not reasons or all(reasons):
        raise ValueError(next(iter(reasons), "no frame"))
    for array in game.obs.values():
        assert not np.issubdtype(array.dtype, np.floating) or np.isfinite(array).all()
    game.choose(np.ones((game.layout.heroes, 6), np.int16))


TARGETS = (Target("world-state", "wire", decode_world_state, world_states, mutate=mutate_world_state),
           Target("client-frames", "wire", decode_frames, played_frames, mutate=mutate_frames))
