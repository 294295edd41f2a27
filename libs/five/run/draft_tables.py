"""Draft tables of a run in its blob store: written by processes that have the policy, read by the controller.

Each is one safetensors file of `five.agent.draft.leaves.LeafTable` under ``<run>/draft/``, named by its version, and
by its pool if that is not the run's.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from dota.config import GameConfig
from five.agent.draft.leaves import HeroPool, LeafTable
from five.agent.draft.pick_order import DraftError
from rapid import tensorfile
from rapid.blobs import BlobStore

ARRAY = "win"
MAX_HEADER = 1 << 16  # bytes that are read to find a table's facts
MAX_TABLE = 1 << 30  # bytes of the largest table that is read
MAX_LINE_UPS = (MAX_TABLE - MAX_HEADER) // 4  # float32 each
KEPT_TABLES = 8  # newest tables of the run's own pool


def pool_of(game: GameConfig, heroes: list[str] | None = None) -> HeroPool:
    """Return the pool that a game's teams draft from, or that of ``heroes``.

    Raises DraftError for a mirror match, for heroes outside the game's pool, for too few, and for so many that a table
    of their line-ups would exceed `MAX_TABLE`.
    """
    if game.mirror_match:
        raise DraftError("game.mirror_match is on: both teams play the same heroes, so there is no draft")
    unknown = [hero for hero in heroes or () if hero not in game.hero_pool]
    if unknown:
        raise DraftError(f"{', '.join(unknown)}: not in game.hero_pool, so the agent has never played it; allowed are "
                         f"{', '.join(game.hero_pool)}")
    try:
        pool = HeroPool.from_game(heroes or list(game.hero_pool), game.heroes_per_team)
    except ValueError as error:
        raise DraftError(str(error)) from None
    if pool.line_ups > MAX_LINE_UPS:
        raise DraftError(f"{len(pool.heroes)} heroes, {pool.team} a side, have {pool.line_ups:,} line-ups: at most "
                         f"{MAX_LINE_UPS:,} fit into a table; name fewer heroes (five draft --pool)")
    return pool


def table_name(version: int, pool: HeroPool, game: GameConfig) -> str:
    """Return the name of a table. It has a digest of the pool if that is not the game's."""
    name = f"version-{version}"
    if pool == HeroPool.from_game(list(game.hero_pool), game.heroes_per_team):
        return name
    identity = json.dumps([list(pool.heroes), pool.team, pool.shared])
    return f"{name}-{hashlib.sha256(identity.encode()).hexdigest()[:8]}"


def serialize(leaves: LeafTable) -> list[memoryview]:
    """Return a table as the pieces of its file, which `parse` reads."""
    pool = leaves.pool
    about = {"heroes": list(pool.heroes), "team": pool.team, "shared": pool.shared, "facts": leaves.facts}
    return list(tensorfile.file_pieces({ARRAY: np.asarray(leaves.win, np.float32)}, about))


def version_of(name: str) -> int:
    """Return the version of a table's name; -1 for another name."""
    kind, _, rest = name.partition("-")
    number = rest.partition("-")[0]
    return int(number) if kind == "version" and number.isdigit() and len(number) <= 15 else -1


def parse(data: "bytes | np.ndarray[Any, np.dtype[np.uint8]]") -> LeafTable:
    """Return the table of a file's bytes. Raises ValueError for a malformed file."""
    arrays, index = tensorfile.parse(data)
    about: Mapping[str, Any] = index.meta
    try:
        pool = HeroPool(tuple(str(hero) for hero in about["heroes"]), int(about["team"]), bool(about["shared"]))
        return LeafTable(pool, arrays[ARRAY], dict(about["facts"]))
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a draft table: {error}") from None


class DraftTableStore:
    """Draft tables of one run in its blob store. Calls block."""

    def __init__(self, blobs: BlobStore, run: str) -> None:
        self._blobs = blobs
        self._folder = f"{run}/draft/"

    def put(self, name: str, leaves: LeafTable) -> None:
        """Store a table under a name."""
        self._blobs.put(serialize(leaves), self._folder + name)

    def names(self) -> list[str]:
        """Return the names of the stored tables, the newest version first."""
        found = [name.removeprefix(self._folder) for name in self._blobs.refs(self._folder)]
        return sorted((name for name in found if version_of(name) >= 0), key=lambda n: (-version_of(n), len(n), n))

    def digest(self, name: str) -> str:
        """Return the digest of a table's contents. Raises BlobMissing."""
        return self._blobs.ref(self._folder + name).digest

    def read(self, name: str) -> LeafTable:
        """Return a table. Raises BlobMissing, Corrupt, ValueError for a malformed file."""
        ref = self._blobs.ref(self._folder + name)
        if ref.size > MAX_TABLE:
            raise ValueError(f"draft table {name!r} has {ref.size} bytes: at most {MAX_TABLE} are allowed")
        return parse(self._blobs.get_array(ref))

    def about(self, name: str) -> dict[str, Any]:
        """Return a table's ``heroes``, ``team``, ``shared`` and ``facts`` without reading its values. Raises
        BlobMissing, ValueError."""
        ref = self._blobs.ref(self._folder + name)
        start = self._blobs.get_prefix(ref, MAX_HEADER)
        header = tensorfile.header_bytes(start, ref.size)
        return dict(tensorfile.parse_header(start[8:header], ref.size - header).meta)

    def forget_old(self, keep: int = KEPT_TABLES) -> None:
        """Remove all but the newest tables of the run's own pool. Requested tables of other pools stay."""
        own = [name for name in self.names() if name.count("-") == 1]
        for name in own[keep:]:
            self._blobs.remove_ref(self._folder + name)
