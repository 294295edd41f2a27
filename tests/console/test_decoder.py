"""The browser's decoder of recordings reads what Python wrote and refuses damaged data."""

import hashlib
import random
import zlib
from pathlib import Path

import numpy as np
import pytest

from dota.config import GameConfig
from dota.spectator.chunks import HEAD, read_chunk
from dota.spectator.recording import Recording, RecordingWriter
from dota.vec_game import Controller, VecGame
from tests.console import console

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300),
              pytest.mark.skipif(bool(console.missing()), reason=console.missing() or "here")]


@pytest.fixture(scope="module")
def decoder() -> Path:
    return console.program(console.CONSOLE / "tests" / "decode.ts")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half a minute of a five-a-side bot game, some minutes old, with policy outputs."""
    path = tmp_path_factory.mktemp("recorded") / "a.view"
    config = GameConfig()
    vec = VecGame(config, 1, seed=3, observations=False)
    vec.controllers[:] = Controller.SCRIPTED
    for _ in range(1200):
        vec.step()
    writer = RecordingWriter(path, config, {"players": ["a", "b"]})
    rng = np.random.default_rng(1)
    for _ in range(220):
        vec.step()
        writer.camera.record(vec, 0)
        writer.camera.record_outputs(0, rng.normal(size=5), 0.6, 12, np.full((5, 6), 2, np.int16))
        writer.camera.choose(3, np.arange(1, 9), rng.dirichlet(np.ones(8)))
        writer.camera.aim(3, np.arange(40), rng.dirichlet(np.ones(40)))
        writer.camera.record_rewards(0, rng.normal(size=(5, 21)))
    writer.close()
    return path


def digest(recording: Recording) -> str:
    sha = hashlib.sha256()
    for step in recording.steps():
        for part in recording.schema.parts:
            sha.update(step.frame[part.name].tobytes())
    return sha.hexdigest()


def test_the_browser_decodes_recordings_of_python(decoder: Path, recorded: Path) -> None:
    recording = Recording.load(recorded)
    (read,) = console.run(decoder, str(recorded))
    assert read["steps"] == 220 and read["sha256"] == digest(recording)
    assert read["events"] == [event for step in recording.steps() for event in step.events]
    assert read["index"] == recording.index()


def test_truncated_recordings_are_read_up_to_the_cut(decoder: Path, recorded: Path, tmp_path: Path) -> None:
    recording = Recording.load(recorded)
    cut = tmp_path / "cut.view"
    cut.write_bytes(recorded.read_bytes()[:recording.spans[3][1] + 100])
    (read,) = console.run(decoder, str(cut))
    assert read["steps"] == 4 * 30 and read["index"] is None


def test_hostile_files_are_refused_or_read_alike(decoder: Path, recorded: Path, tmp_path: Path) -> None:
    """Flipped bits and cut bytes, in the file and behind its checksums: both decoders terminate with the same result.
    """
    whole = recorded.read_bytes()
    recording = Recording(whole)
    start, end = recording.spans[2]
    chunk = whole[start:end]
    packed_at = HEAD.size
    rng = random.Random(5)
    paths, expected = [], []
    for k in range(160):
        if k % 2:  # somebody who knows the format
            raw = bytearray(zlib.decompress(chunk[packed_at:]))
            for _ in range(rng.randrange(1, 5)):
                raw[rng.randrange(len(raw))] = rng.randrange(256)
            if k % 8 == 1:
                raw = raw[:rng.randrange(len(raw))]
            packed = zlib.compress(bytes(raw), 1)
            forged = HEAD.pack(*HEAD.unpack_from(chunk)[:5], len(raw), len(packed), zlib.crc32(packed)) + packed
        else:
            mutable = bytearray(chunk)
            mutable[rng.randrange(len(mutable))] ^= 1 << rng.randrange(8)
            forged = bytes(mutable)
        try:
            steps = list(read_chunk(forged, recording.schema))
            expected.append(len(steps))
        except ValueError:
            expected.append(None)
        path = tmp_path / f"{k}.view"
        path.write_bytes(whole[:recording.spans[0][0]] + forged)
        paths.append(str(path))
    for k in range(40):  # header, index and all
        mutable = bytearray(whole)
        for _ in range(3):
            mutable[rng.randrange(len(mutable) if k % 2 else recording.spans[0][0])] = rng.randrange(256)
        path = tmp_path / f"whole-{k}.view"
        path.write_bytes(bytes(mutable[:rng.randrange(1, len(mutable))] if k % 4 == 0 else mutable))
        paths.append(str(path))
    read = console.run(decoder, *paths)
    assert len(read) == 200
    refused = sum("refused" in found for found in read)
    assert 120 < refused
    for found, steps in zip(read[:160], expected, strict=True):
        # A chunk that ends early is waited for: a stream's next bytes may bring the rest. The checksum is Python's.
        if steps is not None:
            assert found.get("steps") == steps, found
