"""Camera that records a game after each timestep into chunks, with the policy's outputs."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dota.config import GameConfig
from dota.events import Event
from dota.spectator.chunks import CHUNK_STEPS, ChunkWriter
from dota.spectator.console_events import console_events
from dota.spectator.header import make_header, pack_header
from dota.spectator.schema import Frame, FrameSchema, game_schema

BORN, BLINKED = 1 << 9, 1 << 10  # bits of a unit's look
TEAM_HEROES = 5
UNIT_PER_STEP = 400.0  # units that move further in a timestep were teleported: no charge of the game is half as fast
WORLD_UNIT = 65535 / 16640  # of a quantised coordinate

Array = npt.NDArray[Any]


class CameraSource(Protocol):
    """Interface of a game's core that the camera reads."""

    def write_seen(self, game: int, out: dict[str, Array]) -> None: ...

    def events(self, game: int) -> list[Event]: ...


class Camera:
    """Recorder of one game's frames.

    Call ``record`` after the reset and after every step, and ``record_outputs`` with the policy's outputs for that
    frame, if any. ``on_chunk`` receives (chunk, game time in seconds of its first step, its index entry). A frame is
    encoded when the next one arrives, so that outputs can be added first. The first chunk is short, so that a new
    viewer does not wait.
    """

    def __init__(self, config: GameConfig, about: Mapping[str, Any],
                 on_chunk: Callable[[bytes, "ChunkEntry"], None], first_steps: int = CHUNK_STEPS) -> None:
        self.schema = game_schema(policy_debug=True)
        self.header = make_header(config, self.schema, about)
        self._on_chunk = on_chunk
        self._writer = ChunkWriter(self.schema)
        self._steps = first_steps
        self._frame: Frame = self.schema.empty()
        self._before: Frame = self.schema.empty()
        self._earned = np.zeros((len(self._frame["reward"]), self._frame["reward"].shape[1]))
        self._waiting = False
        self._facts: ChunkEntry | None = None
        self._events: list[dict[str, Any]] = []
        self._columns = jump_columns(self.schema)

    def packed_header(self) -> bytes:
        """Encoded header that starts a file or a stream."""
        return pack_header(self.header)

    def record(self, core: CameraSource, game: int) -> None:
        """Record the current state of a game."""
        self.record_frame(lambda out: core.write_seen(game, out), console_events(core.events(game)))

    def record_frame(self, write: Callable[[dict[str, Array]], None], events: list[dict[str, Any]]) -> None:
        """Record a state that ``write`` fills in, with the timestep's spectator events."""
        self._commit()
        self._events = events
        self._frame, self._before = self._before, self._frame
        for name in ("thought", "choice", "aim", "rank", "fall"):
            self._frame[name][...] = 0
        write(self._frame)
        self._frame["reward"][...] = self._before["reward"]
        self._mark()
        self._waiting = True

    def record_outputs(self, team: int, values: Array, win: float | None, version: int, actions: Array) -> None:
        """Record a team's policy outputs for the frame.

        Args: ``values`` float [H]; ``win`` the win probability or None; ``version`` of the policy; ``actions`` int16
        [H, 6], of which the action's id and the unit slot are kept.
        """
        thought = self._frame["thought"]
        rows = slice(team * TEAM_HEROES, team * TEAM_HEROES + len(values))
        thought[rows, 0] = 1 if win is None else 3
        thought[rows, 1] = fixed(values, 1000.0)
        thought[rows, 2] = 0 if win is None else round(min(max(win, 0.0), 1.0) * 65535)
        thought[rows, 3] = min(max(version + 1, 0), 65535)
        thought[rows, 4] = actions[:, 0].astype(np.uint16)

    def choose(self, hero: int, offered: Array, probabilities: Array) -> None:
        """Record the probabilities of a hero's (0-9) available actions: ids and float [n]."""
        first = hero * (len(self._frame["choice"]) // 10)
        n = min(len(offered), len(self._frame["choice"]) // 10)
        self._frame["choice"][first:first + n, 0] = offered[:n]
        self._frame["choice"][first:first + n, 1] = quantise_probabilities(probabilities[:n])

    def aim(self, hero: int, units: Array, probabilities: Array) -> None:
        """Record the most probable target units (world slots) of a hero: int and float [n]."""
        most = len(self._frame["aim"]) // 10
        self._most_probable(self._frame["aim"][hero * most:(hero + 1) * most], units, probabilities)

    def rank(self, team: int, probabilities: Array) -> None:
        """Record a team's predicted net worth ranks at the end, richest first: float [H, 5]."""
        rows = slice(team * TEAM_HEROES, team * TEAM_HEROES + len(probabilities))
        self._frame["rank"][rows] = quantise_probabilities(probabilities)

    def record_building_losses(self, team: int, units: Array, probabilities: Array) -> None:
        """Record a team's predicted building losses: enemy buildings (world slots; -1 when not visible) and float [n].
        """
        most = len(self._frame["fall"]) // 2
        self._most_probable(self._frame["fall"][team * most:(team + 1) * most], units, probabilities)

    @staticmethod
    def _most_probable(rows: Array, units: Array, probabilities: Array) -> None:
        """Write the most probable units and their probabilities into the rows."""
        there = np.flatnonzero((probabilities > 0.004) & (units >= 0))
        order = there[np.argsort(-probabilities[there], kind="stable")][:len(rows)]
        rows[:len(order), 0] = units[order] + 1
        rows[:len(order), 1] = quantise_probabilities(probabilities[order])

    def record_rewards(self, team: int, rewards: Array) -> None:
        """Record the last step's weighted rewards by term for a team's heroes: float [H, signals]."""
        rows = slice(team * TEAM_HEROES, team * TEAM_HEROES + len(rewards))
        self._earned[rows] += rewards
        self._frame["reward"][rows] = fixed(self._earned[rows], 100.0)

    def end(self) -> None:
        """Flush the remaining steps into a chunk, at the end of a game or when nobody watches."""
        self._commit()
        self._send()

    def _mark(self) -> None:
        mark_jumps(self._frame["unit"], self._before["unit"], self._columns, UNIT_PER_STEP)

    def _commit(self) -> None:
        if not self._waiting:
            return
        self._waiting = False
        clock = self._frame["clock"][0]
        frame = int(clock[0]) | int(clock[1]) << 16
        events, self._events = self._events, []
        if self._writer.steps == 0:
            self._facts = ChunkEntry(frame, game_time(clock))
        assert self._facts is not None
        self._writer.add(self._frame, frame, events)
        self._facts.add(self._frame, events)
        if self._writer.steps >= self._steps:
            self._send()

    def _send(self) -> None:
        if self._writer.steps and self._facts is not None:
            facts = self._facts
            self._steps = CHUNK_STEPS
            self._on_chunk(self._writer.take(), facts)


def jump_columns(schema: FrameSchema) -> list[int]:
    """Return the columns of the unit table that `mark_jumps` reads."""
    unit = schema.table("unit")
    return [unit.column(name) for name in ("generation", "type", "look", "x", "y")]


def mark_jumps(now: Array, before: Array, columns: list[int], far: float) -> None:
    """Mark units that appeared or moved further than ``far`` world units since ``before``, so that viewers do not
    interpolate.

    Both are unit tables uint16 [units, fields]; ``columns`` come from `jump_columns`.
    """
    generation, kind, look, x, y = columns
    there = now[:, kind] > 0
    born = there & ((now[:, generation] != before[:, generation]) | (before[:, kind] == 0))
    step = now[:, [x, y]].astype(np.int32) - before[:, [x, y]]
    jumped = there & ~born & ((step * step).sum(1) > (far * WORLD_UNIT) ** 2)
    now[born, look] |= BORN
    now[jumped, look] |= BLINKED


class ChunkEntry:
    """Index entry of a chunk: its start, its events, and the tracks that are plotted over whole games."""

    def __init__(self, frame: int, time: float) -> None:
        self.frame = frame
        self.time = time
        self.steps = 0
        self.events: list[dict[str, Any]] = []
        self.track: list[list[float | None]] = []  # time, win probability of Radiant, net worth of each team

    def add(self, frame: Frame, events: list[dict[str, Any]]) -> None:
        """Add a step."""
        now = game_time(frame["clock"][0])
        self.events += [{**event, "time": round(now, 2)} for event in events]
        if self.steps % TRACK_STEPS == 0:
            worth = frame["hero"][:, 3].astype(np.int64)
            self.track.append([round(now, 2), radiant_wins(frame["thought"]), int(worth[:5].sum()),
                               int(worth[5:].sum())])
        self.steps += 1


TRACK_STEPS = 10  # between two points of a track


def radiant_wins(thought: Array) -> float | None:
    """Return Radiant's win probability averaged over both teams' predictions; None when neither predicts."""
    seen = []
    for team, sign in ((0, 1), (1, -1)):
        if int(thought[team * TEAM_HEROES, 0]) & 2:
            p = float(thought[team * TEAM_HEROES, 2]) / 65535
            seen.append(p if sign > 0 else 1 - p)
    return round(sum(seen) / len(seen), 4) if seen else None


def game_time(clock: Array) -> float:
    """Return the seconds since the horn from a clock row."""
    hundredths = int(clock[2]) | int(clock[3]) << 16
    return (hundredths - (1 << 32) if hundredths >= 1 << 31 else hundredths) / 100


def fixed(values: Array, scale: float) -> npt.NDArray[np.uint16]:
    """Convert to signed fixed-point numbers, two's complement in 16 bits."""
    return np.clip(np.round(np.asarray(values, np.float64) * scale), -32768, 32767).astype(np.int16).view(np.uint16)


def quantise_probabilities(probabilities: Array) -> npt.NDArray[np.uint16]:
    """Quantise probabilities to 255 levels: as fine as a bar can show, and coarse enough to change rarely."""
    return np.round(np.clip(np.asarray(probabilities, np.float64), 0, 1) * 255).astype(np.uint16)

