"""Header of a recording. It defines all of its numbers, so that a viewer needs nothing else."""

import functools
import hashlib
import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any

from dota import _core
from dota.config import GameConfig
from dota.malformed import MALFORMED
from dota.spaces import DATA, Layout
from dota.spectator.facts import play_facts
from dota.spectator.schema import FrameSchema, parse_schema
from dota.tables import load_tables

MAGIC = b"FIVEVIEW"
FORMAT = 1
MAX_SIZE = 8 << 20
_SIZES = struct.Struct("<II")  # unpacked, packed

Header = dict[str, Any]


@functools.cache
def _map(patch: str) -> dict[str, Any]:
    data = json.loads((DATA / f"dota-{patch}" / "map.json").read_text(encoding="utf-8"))
    world = data["world"]
    return {"x": world["min_x"], "y": world["min_y"], "extent": world["cell"] * world["w"], "cells": world["w"],
            "elevation": data["grids"]["elevation"], "trees": [[x, y] for x, y, _ in data["trees"]],
            "fog_cells": 130}


@functools.cache
def data_digest(patch: str) -> str:
    """Return 16 hex digits of a hash over the game data of a patch."""
    digest = hashlib.sha256()
    for path in sorted((DATA / f"dota-{patch}").glob("*.json")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def make_header(config: GameConfig, schema: FrameSchema, about: Mapping[str, Any]) -> Header:
    """Return the header of a game that is recorded after each step. ``about`` holds players, seed and run as JSON
    values, which are shown unchanged."""
    tables = load_tables(config.patch)
    return {
        "format": FORMAT, "schema": schema.described(), "steps_per_second": 1.0 / config.timestep_seconds,
        "patch": config.patch, "mode": config.mode,
        "core": {"interface": _core.INTERFACE, "fingerprint": f"{_core.FINGERPRINT:016x}",
                 "data": data_digest(config.patch)},
        "names": {"unit": tables.units, "ability": tables.abilities, "item": tables.items,
                  "kind": _core.UNIT_KINDS, "rune": _core.PICKUPS,
                  "action": [a.name for a in Layout(config).actions]},
        "map": _map(config.patch), "play": play_facts(config), "about": dict(about)}


def pack_header(header: Header) -> bytes:
    """Encode the header, the first bytes of a file or stream."""
    raw = json.dumps(header, separators=(",", ":")).encode()
    packed = zlib.compress(raw, 9)
    return MAGIC + _SIZES.pack(len(raw), len(packed)) + packed


def read_header(data: bytes) -> tuple[Header, FrameSchema, int]:
    """Return the header, its schema, and the offset of the first chunk. Raises ValueError for bytes that are not a
    recording."""
    start = len(MAGIC) + _SIZES.size
    if len(data) < start or data[:len(MAGIC)] != MAGIC:
        raise ValueError("its first bytes are not a recording's")
    unpacked, packed = _SIZES.unpack_from(data, len(MAGIC))
    if unpacked > MAX_SIZE or packed > MAX_SIZE or len(data) < start + packed:
        raise ValueError("its header is truncated or too large")
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(data[start:start + packed], unpacked + 1)
        header = json.loads(raw) if len(raw) == unpacked and unpacker.eof else None
    except (zlib.error, *MALFORMED) as error:
        raise ValueError(f"its header cannot be read: {error}") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"its header does not have format {FORMAT}")
    return header, parse_schema(header.get("schema")), start + packed
