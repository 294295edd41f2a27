"""Targets of files and blobs: replays, recordings, parameters, draft tables, backups, tokens and reports."""

import functools
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import yaml
from starlette.responses import JSONResponse

from dota.playback import play
from dota.replay import PersonRow, Replay
from dota.spectator.chunks import HEAD, read_chunk, read_head, read_step
from dota.spectator.header import MAGIC, read_header
from dota.spectator.recording import Recording, RecordingWriter
from dota.spectator.schema import game_schema, pack_frame, unpack_frame
from dota.vec_game import VecGame
from five import yaml_core
from five.agent.draft.leaves import HeroPool, LeafTable
from five.evaluation.saved_state import load_evidence, load_record
from five.run import draft_tables
from five.run.config import RunConfig
from five.run.load import ConfigError, load_stored
from five.run.migration import checkpoint_tensors
from five.services.controller.games.recordings import RecordingReader
from five.services.controller.http import tokens
from five.services.play.recordings import GameRecording, RecordingStore, recorded_of
from rapid import tensorfile
from rapid.blobs import BlobStore
from rapid.config import StoreConfig
from rapid.rpc.access import Audience
from rapid.rpc.callers import CallersFile, callers_text
from rapid.store import backup
from rapid.store.archive import VersionArchive
from rapid.store.errors import Corrupt
from rapid.store.state import RunState
from tests.fuzz.message_targets import GAME
from tests.fuzz.mutators import mutate_bytes, mutate_json, mutate_yaml, within
from tests.fuzz.record_targets import DAMAGED, client
from tests.fuzz.targets import Target, memory_folder

SCHEMA = game_schema(policy_debug=False)
MAX_STEPS = 40  # of a replay that is played


@functools.cache
def folder() -> Path:
    """Return a folder of this process."""
    return memory_folder()


def _file(data: bytes, name: str = "file") -> Path:
    path = folder() / name
    path.write_bytes(data)
    return path


# ---- replays --------------------------------------------------------------------------------------------------------


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
    replay = Replay.load(_file(data, "a.replay"))
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


# ---- recordings -----------------------------------------------------------------------------------------------------


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
    found = Recording.load(_file(data, "a.view"))
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
    """Read the description of a recording as the play service and the controller do."""
    blobs = BlobStore(str(folder()))
    blobs.put(data, "replays/a.json")
    blobs.put(b"view", "replays/a.view")
    found = RecordingReader(lambda: blobs).all()
    assert len(found) == 1
    JSONResponse(found)  # as REST answers
    place = folder() / "recordings"
    place.mkdir(exist_ok=True)
    (place / f"{'0' * 32}.view").write_bytes(b"view")
    (place / f"{'0' * 32}.json").write_bytes(data)
    RecordingStore(4, 1 << 20, place)
    recorded_of(json.loads(data) if data.strip()[:1] == b"{" else None, 4)


# ---- parameters -----------------------------------------------------------------------------------------------------


def tensor_file() -> bytes:
    """Return a file with arrays of several dtypes."""
    arrays = {"w": np.ones((3, 4), np.float32), "b": np.zeros(0, np.float16), "n": np.array(3, np.int64),
              "h": np.ones(3, np.uint16), "t": np.array([True])}
    return b"".join(map(bytes, tensorfile.file_pieces(arrays, {"reward_std": 1.0}, ["h"], label="a")))


def decode_tensor_file(data: bytes) -> None:
    """Decode a file of arrays; an accepted one survives encoding."""
    arrays, index = tensorfile.parse(data)
    again, other = tensorfile.parse(b"".join(
        map(bytes, tensorfile.file_pieces(arrays, index.meta, index.bfloat16, index.label))))
    assert repr(other.meta) == repr(index.meta) and arrays.keys() == again.keys()
    assert all(arrays[n].tobytes() == again[n].tobytes() and arrays[n].shape == again[n].shape for n in arrays)


def decode_checkpoint(data: bytes) -> None:
    """Load a checkpoint's blob, and an archived version's metadata."""
    blobs = BlobStore(str(folder()))
    ref = blobs.put(data, "rows/versions/0000000003")
    try:
        VersionArchive(client(), "rows", StoreConfig(archive_every=1), blobs).meta(3)
    except Corrupt:
        pass
    checkpoint_tensors(blobs, ref)


def _tensor_header(data: bytes) -> bytes:
    return data[8:8 + int.from_bytes(data[:8], "little")]


def _with_header(data: bytes, header: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header + data[8 + int.from_bytes(data[:8], "little"):]


MUTATE_TENSORS = within(_tensor_header, _with_header, mutate_json)


def draft_table() -> bytes:
    """Return a draft table."""
    pool = HeroPool(("lion", "sven", "viper", "sniper"), 1)
    leaves = LeafTable(pool, np.full((4, 3), 0.5, np.float32), {"version": 2})
    return b"".join(map(bytes, draft_tables.file_of(leaves)))


def decode_draft_table(data: bytes) -> None:
    """Read a draft table and its description."""
    blobs = BlobStore(str(folder()))
    blobs.put(data, "trial/draft/version-2")
    store = draft_tables.DraftTableStore(blobs, "trial")
    store.about("version-2")
    store.read("version-2")


# ---- backups, tokens, configurations ------------------------------------------------------------------------------


@functools.cache
def backup_file() -> bytes:
    """Return a backup of a small run."""
    client().flushdb()
    RunState(client(), "saved").create({"name": "saved"}, "test")
    file = io.BytesIO()
    backup.save(client(), "saved", file)
    return file.getvalue()


def decode_backup(data: bytes) -> None:
    """Describe a backup and restore it into an empty Redis."""
    file = io.BytesIO(data)
    backup.describe(file)
    client().flushdb()
    backup.load(client(), io.BytesIO(data), "test", replace=True)


def mutate_zip(data: bytes, dice: Random) -> bytes:
    """Change a member of an archive, or its name, with valid checksums."""
    if dice.random() < 0.25:
        return mutate_bytes(data, dice)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(name, archive.read(name)) for name in archive.namelist()]
        at = dice.randrange(len(members))
        name, content = members[at]
        match dice.randrange(8):
            case 0:
                del members[at]
            case 1:
                members.append((name, content))
            case 2:
                members[at] = name + "x", content
            case 3:
                members[at] = name, content * dice.choice((2, 1000))
            case _:
                members[at] = name, (mutate_json if name.endswith(".json") else mutate_bytes)(content, dice)
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members:
                archive.writestr(name, content)
        return file.getvalue()
    except Exception:
        return mutate_bytes(data, dice)


def token_file() -> bytes:
    """Return a file of named tokens."""
    path = folder() / "made.json"
    expires = tokens.parse_expiry("30d")
    tokens.write(path, [tokens.make("ada", "operator")[1], tokens.make("vera", "viewer", expires)[1]])
    return path.read_bytes()


def decode_tokens(data: bytes) -> None:
    """Read a file of named tokens; accepted ones survive writing."""
    found = tokens.read(_file(data, "tokens.json"))
    tokens.write(folder() / "again.json", found)
    assert tokens.read(folder() / "again.json") == found
    tokens.find_token(found, "five_x")


def decode_callers(data: bytes) -> None:
    """Read a file of the callers that a server knows."""
    CallersFile(str(_file(data, "callers.json")), Audience.OPTIMIZER).find("secret")


def decode_expiry(data: bytes) -> None:
    """Parse a token's expiry."""
    tokens.parse_expiry(data.decode("utf-8", "replace"))


def decode_yaml(data: bytes) -> None:
    """Parse YAML of the core schema; an accepted text survives encoding."""
    tree = yaml_core.load(data.decode("utf-8", "replace"))
    assert repr(yaml_core.load(yaml_core.dump(tree, sort_keys=False))) == repr(tree)


def decode_configuration(data: bytes) -> None:
    """Load a run's configuration file."""
    load_stored(_file(data, "config.yaml"))


def _saved(load: Callable[[Path], object]) -> Callable[[bytes], object]:
    return lambda data: load(_file(data, "saved.json"))


def _saved_record() -> bytes:
    from tests.fuzz.record_targets import RECORD

    return json.dumps({"record": json.loads(RECORD.to_json()), "plans": {}}).encode()


def _saved_evidence() -> bytes:
    from five.agent.draft.evidence import DraftEvidence

    return json.dumps(DraftEvidence(("lion", "sven")).to_json()).encode()


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
        "five/services/play/recordings.py:RecordingStore._find_recordings"), mutate=mutate_json),
    Target("tensor-file", "files", decode_tensor_file, lambda: [tensor_file()], decoders=(
        "rapid/tensorfile.py:parse_header", "rapid/tensorfile.py:header_bytes", "rapid/tensorfile.py:parse"),
           mutate=MUTATE_TENSORS),
    Target("checkpoint", "files", decode_checkpoint, lambda: [tensor_file()], DAMAGED, (
        "rapid/store/archive.py:VersionArchive.meta",), mutate=MUTATE_TENSORS),
    Target("draft-table", "files", decode_draft_table, lambda: [draft_table()], DAMAGED, (
        "five/run/draft_tables.py:DraftTableStore.about",), mutate=MUTATE_TENSORS),
    Target("backup", "files", decode_backup, lambda: [backup_file()], DAMAGED, (
        "rapid/store/backup_file.py:read", "rapid/store/backup.py:load"), mutate=mutate_zip),
    Target("callers-file", "files", decode_callers, lambda: [callers_text({"rollout": ["a"]}).encode()], decoders=(
        "rapid/rpc/callers.py:CallersFile._read",), mutate=mutate_json),
    Target("token-file", "files", decode_tokens, lambda: [token_file()], decoders=(
        "five/services/controller/http/tokens.py:read",), mutate=mutate_json),
    Target("token-expiry", "files", decode_expiry, lambda: [b"30d", b"12h", b"2031-01-31"]),
    Target("yaml", "files", decode_yaml, lambda: [b"a: 1\nb: [0x1f, 1e-5, ~]\nc: {d: yes}\n<<: {e: 1}\n"],
           (ValueError, yaml.YAMLError), ("five/yaml_core.py:load",), mutate=mutate_yaml),
    Target("configuration", "files", decode_configuration, lambda: [
        yaml_core.dump(RunConfig().model_dump(mode="json")).encode()[:1 << 15], b"name: five\ngame: {patch: 7.21d}\n"],
           (ValueError, ConfigError), mutate=mutate_yaml),
    Target("saved-record", "files", _saved(load_record), lambda: [_saved_record()], decoders=(
        "five/evaluation/saved_state.py:load_record",), mutate=mutate_json),
    Target("saved-evidence", "files", _saved(load_evidence), lambda: [_saved_evidence()], decoders=(
        "five/evaluation/saved_state.py:load_evidence",), mutate=mutate_json),
]
