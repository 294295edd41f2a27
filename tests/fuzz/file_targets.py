"""Targets of files and blobs: parameters, draft tables, backups, tokens, configurations and reports."""

import functools
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import yaml

from five import yaml_core
from five.agent.draft.leaves import HeroPool, LeafTable
from five.evaluation.saved_state import load_evidence, load_record
from five.run import draft_tables
from five.run.config import RunConfig
from five.run.load import ConfigError, load_stored
from five.run.migration import checkpoint_tensors
from five.services.controller.http import tokens
from rapid import tensorfile
from rapid.blobs import BlobStore
from rapid.config import StoreConfig
from rapid.rpc.access import Audience
from rapid.rpc.callers import CallersFile, callers_text
from rapid.store import backup
from rapid.store.archive import VersionArchive
from rapid.store.errors import Corrupt
from rapid.store.state import RunState
from tests.fuzz.mutators import mutate_bytes, mutate_json, mutate_yaml, within
from tests.fuzz.record_targets import DAMAGED, client
from tests.fuzz.targets import Target, memory_folder


@functools.cache
def folder() -> Path:
    """Return a folder of this process."""
    return memory_folder()


def store_file(data: bytes, name: str) -> Path:
    """Write a file in that folder and return its path."""
    path = folder() / name
    path.write_bytes(data)
    return path


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
    return b"".join(map(bytes, draft_tables.serialize(leaves)))


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
    found = tokens.read(store_file(data, "tokens.json"))
    tokens.write(folder() / "again.json", found)
    assert tokens.read(folder() / "again.json") == found
    tokens.find_token(found, "five_x")


def decode_callers(data: bytes) -> None:
    """Read a file of the callers that a server knows."""
    CallersFile(str(store_file(data, "callers.json")), Audience.OPTIMIZER).find("secret")


def decode_expiry(data: bytes) -> None:
    """Parse a token's expiry."""
    tokens.parse_expiry(data.decode("utf-8", "replace"))


def decode_yaml(data: bytes) -> None:
    """Parse YAML of the core schema; an accepted text survives encoding."""
    tree = yaml_core.load(data.decode("utf-8", "replace"))
    assert repr(yaml_core.load(yaml_core.dump(tree, sort_keys=False))) == repr(tree)


def decode_configuration(data: bytes) -> None:
    """Load a run's configuration file."""
    load_stored(store_file(data, "config.yaml"))


def _saved(load: Callable[[Path], object]) -> Callable[[bytes], object]:
    return lambda data: load(store_file(data, "saved.json"))


def _saved_record() -> bytes:
    from tests.fuzz.record_targets import RECORD

    return json.dumps({"record": json.loads(RECORD.to_json()), "plans": {}}).encode()


def _saved_evidence() -> bytes:
    from five.agent.draft.evidence import DraftEvidence

    return json.dumps(DraftEvidence(("lion", "sven")).to_json()).encode()


TARGETS = [
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
