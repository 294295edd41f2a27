"""Recordings contain the spectator's view, and damaged ones are refused."""

import math
import random
import zlib
from pathlib import Path

import numpy as np
import pytest

from dota import _core
from dota.config import GameConfig
from dota.spectator.camera import BLINKED, BORN, Camera
from dota.spectator.chunks import CHUNK_STEPS, HEAD, ChunkWriter, read_chunk
from dota.spectator.header import pack_header, read_header
from dota.spectator.recording import Recording, RecordingWriter
from dota.spectator.schema import game_schema, parse_schema, same
from dota.vec_game import Controller, VecGame

CONFIG = GameConfig()


@pytest.fixture(scope="module")
def game() -> VecGame:
    """A five-a-side bot game, some minutes old, with waves, heroes and neutrals."""
    vec = VecGame(CONFIG, 1, seed=3, observations=False)
    vec.controllers[:] = Controller.SCRIPTED
    for _ in range(1100):
        vec.step()
    return vec


@pytest.fixture(scope="module")
def chunks(game: VecGame) -> list[bytes]:
    """Three chunks of the game."""
    made: list[bytes] = []
    camera = Camera(CONFIG, {}, lambda chunk, facts: made.append(chunk))
    for _ in range(3 * CHUNK_STEPS):
        camera.record(game, 0)
        game.step()
    camera.end()
    return made


def test_a_frame_is_the_spectators_view_within_the_quantisation(game: VecGame) -> None:
    schema = game_schema(policy_debug=False)
    frame = schema.empty()
    game.write_seen(0, frame)
    writer = ChunkWriter(schema)
    writer.add(frame, 17)
    (step,) = read_chunk(writer.take(), schema)
    seen = game.spectate(0)
    unit = schema.table("unit")
    header = Camera(CONFIG, {}, lambda chunk, facts: None).header
    rows = step.frame["unit"]
    assert np.flatnonzero(rows[:, unit.column("type")]).tolist() == [u["slot"] for u in seen["units"]]
    assert len(seen["units"]) > 80
    for u in seen["units"]:
        row = dict(zip(unit.fields, rows[u["slot"]].tolist(), strict=True))
        assert header["names"]["unit"][row["type"] - 1] == u["name"]
        assert header["names"]["kind"][row["look"] & 15] == u["kind"]
        assert (row["look"] >> 4 & 3, row["generation"]) == (u["team"], u["generation"])
        assert bool(row["look"] & 64) == u["alive"]
        assert (bool(row["look"] & 128), bool(row["look"] & 256)) == u["seen_by"]
        assert (row["look"] >> 11) - 1 == u["hero"]
        for axis in ("x", "y"):
            assert abs(row[axis] / 65535 * 16640 - 8320 - u[axis]) <= 0.13
        turned = (row["facing"] / 256 * math.tau - u["facing"]) % math.tau
        assert min(turned, math.tau - turned) <= math.tau / 512 + 1e-4
        for points in ("hp", "max_hp", "mana", "max_mana"):
            assert abs(row[points] - u[points]) <= (1.0 if 0 < u[points] < 1 else 0.5001), points
        if u["hero"] >= 0:
            hero = dict(zip(schema.table("hero").fields, step.frame["hero"][u["hero"]].tolist(), strict=True))
            assert (hero["unit"] - 1, hero["level"]) == (u["slot"], u["level"])
            assert abs(hero["gold"] - u["gold"]) <= 0.5001
            items = step.frame["item"][u["hero"] * 16:u["hero"] * 16 + 16, 0].tolist()
            assert [header["names"]["item"][i - 1] if i else "" for i in items] == u["items"]
            abilities = step.frame["ability"][u["hero"] * 6:u["hero"] * 6 + 6].tolist()
            assert [(header["names"]["ability"][i - 1] if i else "", level) for i, level, *_ in abilities] == [
                (name, level) for name, level, _ in u["abilities"]]
    assert np.count_nonzero(step.frame["projectile"][:, 1]) <= len(seen["projectiles"])
    assert np.count_nonzero(step.frame["area"][:, 1]) == len(seen["areas"])


def test_fog_is_that_of_the_units_own_eyes(game: VecGame) -> None:
    schema = game_schema(policy_debug=False)
    frame = schema.empty()
    game.write_seen(0, frame)
    for team, name in enumerate(("radiant_fog", "dire_fog")):
        lit = np.unpackbits(frame[name], bitorder="little", count=130 * 130).reshape(130, 130)
        heroes = [u for u in game.spectate(0)["units"] if u["hero"] >= 0 and u["team"] == team and u["alive"]]
        assert heroes
        assert all(lit[int((u["y"] + 8320) / 128), int((u["x"] + 8320) / 128)] for u in heroes)
        assert 0.02 < lit.mean() < 0.6


def test_encoded_steps_decode_unchanged(game: VecGame) -> None:
    schema = game_schema(policy_debug=True)
    writer = ChunkWriter(schema)
    frame, kept = schema.empty(), []
    rng = np.random.default_rng(1)
    for k in range(CHUNK_STEPS):
        game.write_seen(0, frame)
        frame["choice"][rng.integers(0, 300, 20)] = rng.integers(0, 65536, (20, 2))
        writer.add(frame, k * 4, [{"kind": "x", "k": k}] if k % 7 == 0 else [])
        kept.append({name: array.copy() for name, array in frame.items()})
        game.step()
    chunk = writer.take()
    read = list(read_chunk(chunk, schema))
    assert all(same(a.frame, b) for a, b in zip(read, kept, strict=True))
    assert [s.events for s in read[:8]] == [[{"kind": "x", "k": 0}], [], [], [], [], [], [], [{"kind": "x", "k": 7}]]
    assert len(chunk) < 40_000  # ten kilobytes a second at the most, where every frame alone has twenty


def test_the_first_frame_of_each_chunk_is_self_contained(chunks: list[bytes]) -> None:
    schema = game_schema(policy_debug=True)
    assert len(chunks) == 3
    alone = [next(iter(read_chunk(c, schema))).frame for c in chunks]
    assert all(frame["unit"].any() for frame in alone)
    assert not same(alone[0], alone[1])


def test_units_that_appear_or_jump_are_marked(game: VecGame) -> None:
    made: list[bytes] = []
    camera = Camera(CONFIG, {}, lambda chunk, facts: made.append(chunk))
    hero = next(u for u in game.spectate(0)["units"] if u["hero"] == 0)
    camera.record(game, 0)
    before = game.snapshot(0)
    game._core.place(0, hero["slot"], hero["x"] + 900 if hero["x"] < 0 else hero["x"] - 900, hero["y"])
    camera.record(game, 0)
    game.restore(0, before)
    camera.end()
    first, second = (step.frame["unit"][:, 2] for step in read_chunk(made[0], camera.schema))
    assert (first[first > 0] & BORN > 0).all()
    assert second[hero["slot"]] & BLINKED
    assert not second[hero["slot"]] & BORN
    assert np.count_nonzero(second & BLINKED) == 1


def test_a_recording_is_read_with_its_own_schema_and_index(tmp_path: Path) -> None:
    config = GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], max_game_seconds=600)
    vec = VecGame(config, 1, seed=5, observations=False)
    vec.controllers[:] = [[Controller.HARD, Controller.RANDOM]]
    writer = RecordingWriter(tmp_path / "a.view", config, {"players": ["hard", "<script>alert(1)</script>"]})
    writer.camera.record(vec, 0)
    steps = 1
    while not vec.winner[0]:
        vec.step()
        writer.camera.record_outputs(0, np.array([0.25]), 0.75, 3, np.array([[2, 0, 0, 0, 0, 0]], np.int16))
        writer.camera.record_rewards(0, np.full((1, 21), 0.5))
        writer.camera.rank(0, np.array([[1.0, 0, 0, 0, 0]]))
        writer.camera.record_building_losses(0, np.array([7, -1, 9]), np.array([0.2, 0.9, 0.8]))
        writer.camera.record(vec, 0)
        steps += 1
    writer.close()
    recording = Recording.load(tmp_path / "a.view")
    assert recording.schema == game_schema(policy_debug=True)
    assert recording.header["about"]["players"][1] == "<script>alert(1)</script>"
    read = list(recording.steps())
    assert len(read) == steps
    thought = read[10].frame["thought"][0]
    assert (thought[0], thought[1], thought[3], thought[4]) == (3, 250, 4, 2)
    assert abs(thought[2] / 65535 - 0.75) < 1e-4
    assert read[10].frame["reward"][0, 0] == 550
    assert read[10].frame["rank"][0].tolist() == [255, 0, 0, 0, 0]
    assert read[10].frame["fall"].tolist() == [[10, 204], [8, 51], *[[0, 0]] * 10]  # no fallen building
    index = recording.index()
    assert [c[3] for c in index["chunks"]][:2] == [CHUNK_STEPS, CHUNK_STEPS]
    assert sum(c[3] for c in index["chunks"]) == steps
    assert [recording._data[at:at + 4] for at, *_ in index["chunks"]] == [b"FVCH"] * len(index["chunks"])
    hero = recording.schema.table("hero")
    deaths = read[-1].frame["hero"][:, hero.column("deaths")]
    died = [e["hero"] for e in index["events"] if e["kind"] == "death"]
    assert [died.count(h) for h in range(10)] == deaths.tolist()
    assert any(e["kind"] == "death" and e == {**e, "hero": 5, "by": [0]} for e in index["events"])
    assert any(e["kind"] == "item" for e in index["events"])
    assert index["events"][-1]["kind"] == "end"
    assert index["track"][3][1] == pytest.approx(0.75, abs=1e-3)
    assert not list(tmp_path.glob("*.part"))


def test_recording_on_a_full_disk_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "game.view.part").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        RecordingWriter(tmp_path / "game.view", CONFIG, {})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("left", [0, 1, 4, HEAD.size - 1, HEAD.size, HEAD.size + 1, -100])
def test_a_truncated_recording_plays_up_to_the_cut(left: int, chunks: list[bytes]) -> None:
    """``left`` bytes of the last chunk are there."""
    head = Camera(CONFIG, {}, lambda chunk, facts: None).packed_header()
    recording = Recording(head + b"".join(chunks[:-1]) + chunks[-1][:left])
    assert len(recording.spans) == len(chunks) - 1
    assert len(list(recording.steps())) == 2 * CHUNK_STEPS
    with pytest.raises(ValueError, match="no index"):
        recording.index()


@pytest.mark.parametrize("seed", range(40))
def test_hostile_bytes_are_refused_by_value_error(chunks: list[bytes], seed: int) -> None:
    rng = random.Random(seed)
    schema = game_schema(policy_debug=True)
    raw = bytearray(zlib.decompress(chunks[seed % 3][HEAD.size:]))
    for _ in range(rng.randrange(1, 6)):  # with a valid checksum, as an attacker would write it
        at = rng.randrange(len(raw))
        raw[at] = rng.randrange(256)
    if seed % 4 == 0:
        raw = raw[:rng.randrange(len(raw))]
    packed = zlib.compress(bytes(raw), 1)
    old = HEAD.unpack_from(chunks[seed % 3])
    forged = HEAD.pack(*old[:5], len(raw), len(packed), zlib.crc32(packed)) + packed
    try:
        steps = list(read_chunk(forged, schema))
    except ValueError:
        return
    assert all(step.frame["unit"].shape == (384, 13) for step in steps)  # wrong values at worst


def test_each_cut_and_flip_of_a_chunk_is_noticed(chunks: list[bytes]) -> None:
    schema, chunk, rng = game_schema(policy_debug=True), chunks[0], random.Random(2)
    for _ in range(60):
        with pytest.raises(ValueError):
            list(read_chunk(chunk[:rng.randrange(len(chunk))], schema))
        flipped = bytearray(chunk)
        # Nothing else determines the frame number.
        at = rng.choice([k for k in range(len(chunk)) if not 16 <= k < 20])
        flipped[at] ^= 1 << rng.randrange(8)
        with pytest.raises(ValueError):
            list(read_chunk(bytes(flipped), schema))


def test_a_bomb_is_not_unpacked(chunks: list[bytes]) -> None:
    packed = zlib.compress(bytes(64 << 20), 9)
    old = HEAD.unpack_from(chunks[0])
    bomb = HEAD.pack(*old[:5], 1 << 20, len(packed), zlib.crc32(packed)) + packed
    with pytest.raises(ValueError, match="size differs from its header"):
        list(read_chunk(bomb, game_schema(policy_debug=True)))


@pytest.mark.parametrize("described", [
    None, {}, {"tables": [["a", 1 << 20, ["x"]]], "bits": []}, {"tables": [["a", 1, []]], "bits": []},
    {"tables": [["a", 1, ["x"]], ["a", 1, ["x"]]], "bits": []}, {"tables": [], "bits": [["b", 1 << 30]]},
    {"tables": [["a", "many", ["x"]]], "bits": []}])
def test_a_malformed_schema_is_refused(described: object) -> None:
    with pytest.raises(ValueError, match="schema"):
        parse_schema(described)


def test_a_header_is_read_back_and_a_damaged_one_refused() -> None:
    header = Camera(CONFIG, {"seed": 5}, lambda chunk, facts: None).header
    packed = pack_header(header)
    read, schema, end = read_header(packed + b"more")
    assert (read, schema, end) == (header, game_schema(policy_debug=True), len(packed))
    assert len(header["map"]["trees"]) == 2207
    assert header["core"]["fingerprint"] == f"{_core.FINGERPRINT:016x}" and int(header["core"]["fingerprint"], 16)
    assert len(packed) < 120_000
    for broken in (b"", packed[:20], packed[:-1], b"X" + packed[1:], packed[:30] + b"\0" + packed[31:]):
        with pytest.raises(ValueError):
            read_header(broken)
