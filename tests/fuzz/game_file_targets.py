"""Targets of files of games: replays, recordings, their chunks and frames, and their descriptions."""

import functools
import json
import struct
import time
import zlib
from random import Random

import numpy as np
from starlette.responses import JSONResponse

from dota.playback import play
from dota.replay import PersonRow, Replay
from dota.spectator.chunks import HEAD, read_chunk, read_head, read_step
from dota.spectator.header import MAGIC, read_header
from dota.spectator.recording import Recording, RecordingWriter
from dota.spectator.schema import game_schema, pack_frame, unpack_frame
from dota.vec_game import VecGame
from five.services.controller.games.recordings import RecordingReader
from five.services.evaluator.recording import StoredRecordings
from five.services.play.recordings import GameRecording, RecordingStore, recorded_of
from rapid.blobs import BlobStore
from tests.fuzz.file_targets import folder, store_file
from tests.fuzz.message_targets import GAME
from tests.fuzz.mutators import mutate_bytes, mutate_json, within
from tests.fuzz.targets import Target

SCHEMA = game_schema(policy_debug=False)
MAX_STEPS = 40  # of a replay that is played


@functools.cache
def replays() -> list[bytes]:
    """Return replays without and with people's orders."""
    found = []
    for people in ([], [PersonRow(3, 0, held=True), PersonRow(5, 0, 3, at=(10.0, 20.0)), PersonRow(9, 0, held=False)]):
        game = VecGame(GAME, 1, seed=3)
        replay = game.record(0)
        for _ in range(6):
            game.step()
        replay.people = people
        path = folder() / "made.replay"
        replay.save(path, None if people else game.hash(0))
        found.append(path.read_bytes())
    return found


def decode_replay(data: bytes) -> None:
    """Load a replay; an accepted one survives saving, and playing it ends or is refused."""
    replay = Replay.load(store_file(data, "a.replay"))
    replay.save(folder() / "b.replay", replay.final_hash)
    again = Replay.load(folder() / "b.replay")
    assert repr((again.config, again.seed, again.people, again.checks)) == repr(
        (replay.config, replay.seed, replay.people, replay.checks)), "a replay changes when it is saved"
    assert np.array_equal(again.orders, replay.orders) and np.array_equal(again.lineup, replay.lineup)
    for step, _ in enumerate(play(replay)):
        if step == MAX_STEPS:
            break


def _replay_body(data: bytes) -> bytes:
    head, _, body = data.partition(b"\n")
    return struct.pack("<I", len(head)) + head + zlib.decompress(body)


def _replay_of(data: bytes, inner: bytes) -> bytes:
    (size,) = struct.unpack_from("<I", inner)
    return inner[4:4 + size] + b"\n" + zlib.compress(inner[4 + size:])


def _mutate_replay(inner: bytes, dice: Random) -> bytes:
    (size,) = struct.unpack_from("<I", inner)
    head, body = inner[4:4 + size], inner[4 + size:]
    if dice.random() < 0.5:
        head = mutate_json(head, dice).replace(b"\n", b" ")
    else:
        body = mutate_bytes(body, dice)
        body = body[:len(inner) - 4 - size].ljust(len(inner) - 4 - size, b"\0") if dice.random() < 0.8 else body
    return struct.pack("<I", len(head)) + head + body


@functools.cache
def recording() -> bytes:
    """Return a recording of a short game."""
    path = folder() / "made.view"
    game = VecGame(GAME, 1, seed=3)
    writer = RecordingWriter(path, GAME, {"players": ["a", "b"]})
    for _ in range(40):
        writer.camera.record(game, 0)
        game.step()
    writer.close()
    return path.read_bytes()


def decode_recording(data: bytes) -> None:
    """Read a recording's header, index and steps."""
    found = Recording.load(store_file(data, "a.view"))
    try:
        found.index()
    except ValueError:
        pass
    for step, _ in enumerate(found.steps()):
        if step == 64:
            break


def _split_recording(data: bytes) -> tuple[bytes, list[bytes], bytes]:
    """Return the header's JSON, the chunks' contents (head and unpacked body), and the rest."""
    size, packed = struct.unpack_from("<II", data, len(MAGIC))
    at = len(MAGIC) + 8 + packed
    header = zlib.decompress(data[len(MAGIC) + 8:at])
    assert len(header) == size
    chunks = []
    while at < len(data) and data[at:at + 4] != b"FVIX":
        end = at + HEAD.size + read_head(data[at:at + HEAD.size]).size
        chunks.append(data[at:at + HEAD.size] + zlib.decompress(data[at + HEAD.size:end]))
        at = end
    return header, chunks, data[at:]


def _join_recording(header: bytes, chunks: list[bytes], rest: bytes) -> bytes:
    packed = zlib.compress(header)
    return b"".join((MAGIC, struct.pack("<II", len(header), len(packed)), packed, *map(_pack_chunk, chunks), rest))


def _pack_chunk(chunk: bytes) -> bytes:
    """Compress a chunk's body, with its sizes and checksum in its head."""
    magic, form, steps, schema, frame, *_ = HEAD.unpack_from(chunk)
    body = chunk[HEAD.size:]
    packed = zlib.compress(body)
    return HEAD.pack(magic, form, steps, schema, frame, len(body), len(packed), zlib.crc32(packed)) + packed


def mutate_recording(data: bytes, dice: Random) -> bytes:
    """Change a header, a chunk or the index, with valid sizes and checksums."""
    if dice.random() < 0.2:
        return mutate_bytes(data, dice)
    try:
        header, chunks, rest = _split_recording(data)
        if dice.random() < 0.4 or not chunks:
            header = mutate_json(header, dice)
        elif dice.random() < 0.8:
            at = dice.randrange(len(chunks))
            chunks[at] = chunks[at][:HEAD.size] + mutate_bytes(chunks[at][HEAD.size:], dice)
        else:
            size = struct.unpack_from("<II", rest, 4)[1]
            index = mutate_json(zlib.decompress(rest[12:12 + size]), dice)
            packed = zlib.compress(index)
            rest = rest[:4] + struct.pack("<II", len(index), len(packed)) + packed + rest[-8:]
        return _join_recording(header, chunks, rest)
    except Exception:
        return mutate_bytes(data, dice)


@functools.cache
def chunk() -> bytes:
    """Return the first chunk of a recording, its body unpacked."""
    return _split_recording(recording())[1][0]


def decode_chunk(data: bytes) -> None:
    """Read a chunk whose body is given unpacked."""
    packed = _pack_chunk(data.ljust(HEAD.size, b"\0"))
    schema = read_header(recording())[1]
    for _ in read_chunk(packed, schema):
        pass
    try:
        read_step(data[HEAD.size:], schema, schema.empty())
    except ValueError:
        pass  # it has more than one step


def _frame() -> bytes:
    game, frame = VecGame(GAME, 1, seed=3), SCHEMA.empty()
    game.write_seen(0, frame)
    return pack_frame(SCHEMA, frame)


def decode_frame(data: bytes) -> None:
    """Decode a spectator's frame; an accepted one survives encoding."""
    frame = unpack_frame(SCHEMA, data)
    again = unpack_frame(SCHEMA, pack_frame(SCHEMA, frame))
    assert all(np.array_equal(frame[name], again[name]) for name in frame)


def _mutate_zlib(data: bytes, dice: Random) -> bytes:
    return within(zlib.decompress, lambda _, inner: zlib.compress(inner), mutate_bytes)(data, dice)


def decode_facts(data: bytes) -> None:
    """Read the description of a recording as the play service, the controller and the evaluator do."""
    blobs = BlobStore(str(folder()))
    blobs.put(data, "fuzz/replays/a.json")
    blobs.put(b"view", "fuzz/replays/a.view")
    found = RecordingReader(lambda: blobs, "fuzz").all()
    assert len(found) == 1
    JSONResponse(found)  # as REST answers
    stored = StoredRecordings(blobs, "fuzz")
    ((at, size),) = stored.all().values()
    assert 0 <= at <= time.time() and size == len(b"view")
    place = folder() / "recordings"
    place.mkdir(exist_ok=True)
    (place / f"{'0' * 32}.view").write_bytes(b"view")
    (place / f"{'0' * 32}.json").write_bytes(data)
    RecordingStore(4, 1 << 20, place)
    recorded_of(json.loads(data) if data.strip()[:1] == b"{" else None, 4)


FACTS = GameRecording("0" * 32, ["a", "b"], ["ada"], 1.0, 2.0, 1, [3, 4], 4).facts()
TARGETS = [
    Target("replay", "files", decode_replay, replays, decoders=("dota/replay.py:Replay.load",),
           mutate=within(_replay_body, _replay_of, _mutate_replay)),
    Target("recording", "files", decode_recording, lambda: [recording()], decoders=(
        "dota/spectator/header.py:read_header", "dota/spectator/recording.py:Recording.__init__",
        "dota/spectator/recording.py:Recording.index"), mutate=mutate_recording),
    Target("chunk", "files", decode_chunk, lambda: [chunk()], decoders=(
        "dota/spectator/chunks.py:read_head", "dota/spectator/chunks.py:read_chunk",
        "dota/spectator/chunks.py:_read_step", "dota/spectator/chunks.py:_Reader.__init__",
        "dota/spectator/chunks.py:_Reader.words", "dota/spectator/chunks.py:_Reader.planes")),
    Target("frame", "wire", decode_frame, lambda: [_frame()], decoders=("dota/spectator/schema.py:unpack_frame",),
           mutate=_mutate_zlib),
    Target("recording-facts", "files", decode_facts, lambda: [json.dumps(FACTS).encode()], decoders=(
        "five/services/controller/games/recordings.py:RecordingReader._read_facts",
        "five/services/evaluator/recording.py:StoredRecordings._facts",
        "five/services/play/recordings.py:RecordingStore._find_recordings"), mutate=mutate_json),
]
