"""Replay files: how a game began and every order of it. Running one again gives the same game, bit for bit.

A file is a line of JSON (format, version, patch, fingerprints of the core and the data, configuration, seed, lineup,
steps, hashes), then the orders, int16 [steps, 10, 8], little-endian, compressed with zlib. Orders name units by slot
and generation, so that a replay needs no policy and no bot to run. A hash every CHECK_EVERY steps tells within a minute
of game time that another core or other data play another game.
"""

import json
import os
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dota.config import GameConfig

FORMAT = "five-replay"
VERSION = 2
READABLE = (1, 2)  # 1 has no fingerprints and no hash but the last
CHECK_EVERY = 450  # timesteps, a minute of game time
_MAX_STEPS = 1 << 20
_ROW = (10, 8)


class Replay:
    """A game's beginning and orders: ``config``, ``seed``, ``lineup`` int16 [2, H], ``orders`` int16 [steps, 10, 8];
    ``made_by``: fingerprints of the core and the data (None: not known); ``checks``: the hash after every CHECK_EVERY
    steps."""

    def __init__(self, config: GameConfig, seed: int, lineup: npt.NDArray[np.int16],
                 orders: npt.NDArray[np.int16] | None = None, final_hash: int | None = None, *,
                 made_by: tuple[int, int] | None = None, checks: list[int] | None = None) -> None:
        self.config = config
        self.seed = seed
        self.lineup = lineup
        self.final_hash = final_hash
        self.made_by = made_by
        self.checks = checks or []
        self._rows: list[npt.NDArray[np.int16]] = [] if orders is None else list(orders)

    @property
    def orders(self) -> npt.NDArray[np.int16]:
        """int16 [steps, 10, 8]."""
        return np.stack(self._rows) if self._rows else np.zeros((0, *_ROW), np.int16)

    def __len__(self) -> int:
        return len(self._rows)

    def append(self, orders: npt.NDArray[np.int16]) -> None:
        """Adds one timestep's orders, int16 [10, 8]."""
        self._rows.append(orders.copy())

    def check(self, state: int) -> None:
        """Adds the hash of the state that the orders so far have led to."""
        self.checks.append(state)

    def save(self, path: str | Path, final_hash: int | None = None) -> None:
        """Writes the file, whole or not at all. ``final_hash`` lets ``dota.playback`` prove that it replayed the
        same game."""
        head = {"format": FORMAT, "version": VERSION, "patch": self.config.patch,
                "config": self.config.model_dump(mode="json"), "seed": str(self.seed), "lineup": self.lineup.tolist(),
                "steps": len(self), "hash": None if final_hash is None else f"{final_hash:016x}",
                "made_by": None if self.made_by is None else [f"{of:016x}" for of in self.made_by],
                "checks": [f"{state:016x}" for state in self.checks]}
        path = Path(path)
        beside = path.with_name(path.name + ".part")
        with beside.open("wb") as file:
            file.write(json.dumps(head).encode() + b"\n")
            file.write(zlib.compress(self.orders.astype("<i2").tobytes(), 6))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)

    @classmethod
    def load(cls, path: str | Path) -> "Replay":
        """Reads a file. Raises ValueError saying what is wrong with it when it is no replay or is damaged."""
        first, _, body = Path(path).read_bytes().partition(b"\n")
        try:
            head = json.loads(first)
            if not isinstance(head, dict) or head.get("format") != FORMAT:
                raise ValueError("it does not begin as a replay does")
            if head["version"] not in READABLE:
                raise ValueError(f"its version is {head['version']}, this program reads up to {VERSION}")
            steps = int(head["steps"])
            if not 0 <= steps <= _MAX_STEPS:
                raise ValueError(f"it claims {steps} steps")
            size = steps * _ROW[0] * _ROW[1] * 2
            unpacker = zlib.decompressobj()
            data = unpacker.decompress(body, size + 1)
            if len(data) != size or not unpacker.eof:
                raise ValueError(f"its orders do not hold {steps} steps")
            config = GameConfig.model_validate(head["config"])
            lineup = np.array(head["lineup"], np.int16)
            if lineup.shape != (2, config.heroes_per_team):
                raise ValueError("its lineup does not fit its configuration")
            made_by = [int(of, 16) for of in head.get("made_by") or ()]
            if len(made_by) not in (0, 2):
                raise ValueError("its fingerprints are not those of a core and its data")
            checks = [int(state, 16) for state in head.get("checks", ())]
            return cls(config, int(head["seed"]), lineup, np.frombuffer(data, "<i2").reshape(steps, *_ROW),
                       None if head["hash"] is None else int(head["hash"], 16),
                       made_by=(made_by[0], made_by[1]) if made_by else None, checks=checks)
        except (KeyError, TypeError, UnicodeDecodeError, zlib.error, ValueError) as error:
            raise ValueError(f"{path} is no readable replay: {error}") from error
