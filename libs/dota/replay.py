"""Replay files: the start of a game and all of its commands. Playing one reproduces the game bit for bit.

A file is one line of JSON (format, version, patch, fingerprints of the core and the data, configuration, seed, lineup,
steps, hashes), then the commands, int16 [steps, 10, 8], little-endian, and people's orders, rows of ``_PERSON``, both
compressed with zlib. Commands name units by slot and generation, so that a replay needs neither policy nor bot. A hash
at regular steps detects within two minutes of game time that another core or other data diverge.
"""

import json
import math
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dota.config import GameConfig
from dota.malformed import MALFORMED

FORMAT = "five-replay"
VERSION = 3
READABLE = (1, 2, 3)  # 1 has only the final hash and no fingerprints; 1 and 2 have no people
CHECK_EVERY = 450  # timesteps between two hashes, a minute of game time; Replay.check_every may be longer
_MAX_STEPS = 1 << 17  # nearly five hours
_MAX_PEOPLE = 1 << 18
_ROW = (10, 8)
# An action of a person (PersonRow). `frame`: the engine frame before which it takes effect. `item`: index into the
# header's "items". `flags`: 1 has a target, 2 has a position, 4 queued, 8 held, 16 the script buys, 32 one attack only,
# 64 `learns` differs from `scripted` (the script either buys or learns, not both).
_PERSON = np.dtype([("frame", "<u4"), ("x", "<f4"), ("y", "<f4"), ("slot", "<i2"), ("to", "<i2"), ("unit", "<i2"),
                    ("generation", "<u2"), ("item", "<u2"), ("hero", "u1"), ("kind", "i1"), ("flags", "u1")])
_NO_ORDER = -1  # kind of a row in which a person takes or returns control of the hero
_MAX_TEXT, _MAX_TEXTS = 64, 4096


@dataclass(frozen=True)
class PersonRow:
    """Action of a person before an engine frame: an order, or (``kind`` None) taking or returning control of a hero.

    ``kind``: number in ``dota.play.KINDS``; the other fields are those of ``dota.play.Order``.
    """

    frame: int
    hero: int
    kind: int | None = None
    target: tuple[int, int] | None = None
    at: tuple[float, float] | None = None
    slot: int = -1
    to: int = -1
    item: str = ""
    queue: bool = False
    once: bool = False
    held: bool = False
    scripted: bool = False
    learns: bool = False


def _pack_people(rows: list[PersonRow], texts: list[str]) -> npt.NDArray[Any]:
    numbers = {text: k for k, text in enumerate(texts)}
    out = np.zeros(len(rows), _PERSON)
    for k, row in enumerate(rows):
        x, y = row.at or (0.0, 0.0)
        unit, generation = row.target or (-1, 0)
        flags = ((row.target is not None) | (row.at is not None) << 1 | row.queue << 2 | row.held << 3
                 | row.scripted << 4 | row.once << 5 | (row.learns != row.scripted) << 6)
        out[k] = (row.frame, x, y, row.slot, row.to, unit, generation, numbers[row.item], row.hero,
                  _NO_ORDER if row.kind is None else row.kind, flags)
    return out


def _unpack_people(rows: npt.NDArray[Any], texts: list[str]) -> list[PersonRow]:
    out = []
    for frame, x, y, slot, to, unit, generation, item, hero, kind, flags in rows.tolist():
        if item >= len(texts):
            raise ValueError(f"an order uses text {item}, the file has {len(texts)}")
        out.append(PersonRow(frame, hero, None if kind == _NO_ORDER else kind,
                             (unit, generation) if flags & 1 else None, (x, y) if flags & 2 else None, slot, to,
                             texts[item], bool(flags & 4), bool(flags & 32), bool(flags & 8), bool(flags & 16),
                             bool(flags & 16) != bool(flags & 64)))
    return out


class Replay:
    """Start and commands of a game: ``config``, ``seed``, ``lineup`` int16 [2, H], ``orders`` int16 [steps, 10, 8];
    ``made_by``: fingerprints of the core and the data (None: unknown); ``checks``: the hash after every
    `check_every` steps; ``people``: people's actions by engine frame, which may be extended."""

    def __init__(self, config: GameConfig, seed: int, lineup: npt.NDArray[np.int16],
                 orders: npt.NDArray[np.int16] | None = None, final_hash: int | None = None, *,
                 made_by: tuple[int, int] | None = None, checks: list[int] | None = None,
                 people: list[PersonRow] | None = None) -> None:
        self.config = config
        self.seed = seed
        self.lineup = lineup
        self.final_hash = final_hash
        self.made_by = made_by
        self.checks = checks or []
        self.people = people or []
        self._rows: list[npt.NDArray[np.int16]] = [] if orders is None else list(orders)

    @property
    def orders(self) -> npt.NDArray[np.int16]:
        """Commands int16 [steps, 10, 8]."""
        return np.stack(self._rows) if self._rows else np.zeros((0, *_ROW), np.int16)

    def __len__(self) -> int:
        return len(self._rows)

    def append(self, orders: npt.NDArray[np.int16]) -> None:
        """Append one timestep's commands, int16 [10, 8]."""
        self._rows.append(orders.copy())

    @property
    def check_every(self) -> int:
        """Steps from one check to the next: the first multiple of CHECK_EVERY at which a policy chooses."""
        return math.lcm(CHECK_EVERY, self.config.frameskip // 4)

    def check(self, state: int) -> None:
        """Append the hash of the state after the commands so far."""
        self.checks.append(state)

    def save(self, path: str | Path, final_hash: int | None = None) -> None:
        """Write the file atomically. ``final_hash`` lets ``dota.playback`` verify that it reproduced the game."""
        texts = sorted({row.item for row in self.people})
        head = {"format": FORMAT, "version": VERSION, "patch": self.config.patch,
                "config": self.config.model_dump(mode="json"), "seed": str(self.seed), "lineup": self.lineup.tolist(),
                "steps": len(self), "hash": None if final_hash is None else f"{final_hash:016x}",
                "made_by": None if self.made_by is None else [f"{of:016x}" for of in self.made_by],
                "checks": [f"{state:016x}" for state in self.checks], "people": len(self.people), "items": texts}
        path = Path(path)
        temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
        body = self.orders.astype("<i2").tobytes() + _pack_people(self.people, texts).tobytes()
        try:
            with temporary.open("wb") as file:
                file.write(json.dumps(head).encode() + b"\n")
                file.write(zlib.compress(body, 6))
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)  # after an error: a full disk needs its space

    @classmethod
    def load(cls, path: str | Path) -> "Replay":
        """Read a file. Raises ValueError with the reason when it is not a replay or is damaged."""
        first, _, body = Path(path).read_bytes().partition(b"\n")
        try:
            head = json.loads(first)
            if not isinstance(head, dict) or head.get("format") != FORMAT:
                raise ValueError("its first bytes are not a replay's")
            if head["version"] not in READABLE:
                raise ValueError(f"its version {head['version']} is newer than {VERSION}, the newest supported one")
            steps = int(head["steps"])
            if not 0 <= steps <= _MAX_STEPS:
                raise ValueError(f"its header gives {steps} steps, which is out of range")
            people, texts = int(head.get("people", 0)), [str(text)[:_MAX_TEXT] for text in head.get("items", ())]
            "".join(texts).encode()  # the core takes no lone surrogates
            if not 0 <= people <= _MAX_PEOPLE or len(texts) > _MAX_TEXTS:
                raise ValueError(f"its header gives {people} orders and {len(texts)} texts, which is out of range")
            orders_size = steps * _ROW[0] * _ROW[1] * 2
            size = orders_size + people * _PERSON.itemsize
            unpacker = zlib.decompressobj()
            data = unpacker.decompress(body, size + 1)
            if len(data) != size or not unpacker.eof:
                raise ValueError(f"its contents are not {steps} steps of commands and {people} orders of people")
            config = GameConfig.model_validate(head["config"])
            lineup = np.array(head["lineup"], np.int16)
            if lineup.shape != (2, config.heroes_per_team):
                raise ValueError("its lineup does not match its configuration")
            made_by = [int(of, 16) for of in head.get("made_by") or ()]
            if len(made_by) not in (0, 2):
                raise ValueError("its fingerprints are malformed")
            checks = [int(state, 16) for state in head.get("checks", ())]
            orders = np.frombuffer(data[:orders_size], "<i2").reshape(steps, *_ROW)
            return cls(config, int(head["seed"]), lineup, orders,
                       None if head["hash"] is None else int(head["hash"], 16),
                       made_by=(made_by[0], made_by[1]) if made_by else None, checks=checks,
                       people=_unpack_people(np.frombuffer(data[orders_size:], _PERSON), texts))
        except (*MALFORMED, zlib.error) as error:
            raise ValueError(f"{path} is not a readable replay: {error}") from error
