"""Live broadcast of a group's games: records frames, events and the policies' debug output while a game has viewers."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dota.config import GameConfig, RewardConfig
from dota.rewards import signal_weights, time_weights
from dota.spaces import Layout
from dota.spectator.camera import Camera, ChunkEntry
from dota.spectator.policy_debug import building_slots, record_policy_outputs
from five.clients.inference import NEWEST, WANT_POLICY_DEBUG, ActResult
from five.services.rollout.env_slots import EnvSlots
from five.services.rollout.environment import Environment, StepResult
from five.services.rollout.matchmaking import GameRecord
from five.services.rollout.step_buffer import SIDES, StepBuffer
from rapid.live_source import LiveSource

log = logging.getLogger(__name__)
FIRST_STEPS = 6  # steps of the first chunk, short so that a new viewer sees something soon
LISTED_GAMES = 12  # of one group

Array = npt.NDArray[Any]


class LiveBroadcast:
    """Broadcasts one group's games. The group calls it between steps; without viewers a call costs microseconds.

    ``rules`` is the game's configuration, ``rewards`` that of the rewards shown, ``run`` the run's name for the header.
    """

    def __init__(self, source: LiveSource, run: str, rules: GameConfig, rewards: RewardConfig,
                 statistic_names: Sequence[str]) -> None:
        self._source = source
        self._run = run
        self._rules = rules
        self._rewards = rewards
        self._weights = signal_weights(rewards)
        self._buildings = building_slots(Layout(rules))
        self._cameras: dict[int, tuple[str, Camera]] = {}  # by env slot
        self._refused: set[str] = set()  # games whose broadcast failed
        self._outcome: StepResult | None = None
        self._records: Sequence[GameRecord] = ()
        self._columns = {name: list(statistic_names).index(name) for name in ("kills", "net_worth", "level")}

    def update_viewers(self, records: Sequence[GameRecord], slots: EnvSlots, environment: Environment) -> None:
        """Start cameras for newly watched games and stop those without viewers, before a step is requested."""
        self._records = records
        if self._cameras or self._source.watched.games:
            self._run_guarded(lambda: self._update_viewers(records, slots, environment))
        slots.watched[:] = False
        slots.watched[list(self._cameras)] = True

    def _update_viewers(self, records: Sequence[GameRecord], slots: EnvSlots, environment: Environment) -> None:
        for slot, record in enumerate(records):
            game = record.match.game_id
            had = self._cameras.get(slot)
            wanted = self._source.wants(game) and game not in self._refused
            if had is not None and (had[0] != game or not wanted):
                self._cameras.pop(slot)[1].end()
                if had[0] != game:  # it was abandoned
                    self._source.put("end", had[0])
                had = None
            if wanted and had is None:
                camera = Camera(record.variant.config or self._rules, self._game_facts(record),
                                lambda chunk, facts, game=game: self._send(game, chunk, facts),  # type: ignore[misc]
                                FIRST_STEPS)
                self._cameras[slot] = game, camera
                self._source.put("header", game, camera.packed_header())
        # Capturing starts with the next step, because a remote server sends frames with its answer.
        environment.watch(self._cameras)

    def add_policy_debug(self, step: int, buffer: StepBuffer, slots: EnvSlots, answer: ActResult,
                         environment: Environment) -> None:
        """Add the policies' debug output for the step captured last."""
        if self._cameras:
            self._run_guarded(lambda: self._add_policy_debug(step, buffer, slots, answer, environment))

    def _add_policy_debug(self, step: int, buffer: StepBuffer, slots: EnvSlots, answer: ActResult,
                          environment: Environment) -> None:
        row, rows = buffer.row(step), slots.rows
        requested = rows[slots.flags(step).ravel()[rows] & WANT_POLICY_DEBUG != 0]
        at = {int(r): i for i, r in enumerate(requested)}
        for slot, (_, camera) in self._cameras.items():
            for side in range(SIDES):
                index = at.get(slot * SIDES + side)
                if index is None or not answer.policy_debug:
                    continue
                policy_debug = {name: array[index] for name, array in answer.policy_debug.items()}
                self._show(camera, side, policy_debug, buffer, row, slot, environment)

    def add_step(self, outcome: StepResult, environment: Environment) -> None:
        """Capture the step that has just been played."""
        self._outcome = outcome
        if self._cameras:
            self._run_guarded(lambda: self._add_step(outcome, environment))

    def _add_step(self, outcome: StepResult, environment: Environment) -> None:
        for slot, (game, camera) in list(self._cameras.items()):
            weights = self._weights * time_weights(outcome.game_time[slot], self._rewards)
            if environment.capture(slot, camera):
                for side in range(SIDES):
                    camera.record_rewards(side, outcome.signals[slot, side] * weights)
            if outcome.winners[slot]:
                camera.end()
                del self._cameras[slot]
                self._source.put("end", game, facts={"winner": int(outcome.winners[slot])})

    def _run_guarded(self, work: Callable[[], None]) -> None:
        """Run work for viewers. An error ends the broadcast of the games watched now, not the run."""
        try:
            work()
        except Exception:
            log.exception("broadcast failed, ending it for the watched games of this group")
            abandoned, self._cameras = self._cameras, {}
            self._refused |= {game for game, _ in abandoned.values()}
            for game, _ in abandoned.values():
                self._source.put("end", game)

    def games(self) -> list[dict[str, Any]]:
        """Return the group's games for the list of live games."""
        outcome = self._outcome
        found = []
        for slot, record in enumerate(self._records[:LISTED_GAMES]):
            entry: dict[str, Any] = {"game": record.match.game_id, **self._game_facts(record)}
            if outcome is not None:
                sums = {name: np.rint(outcome.statistics[slot, :, :, k].sum(axis=1)).astype(int).tolist()
                        for name, k in self._columns.items()}
                seconds = float(outcome.game_time[slot])
                entry |= {**sums, "time": round(seconds, 1)}
            entry["wall_seconds"] = round(time.monotonic() - record.began, 1)
            found.append(entry)
        return found

    def _game_facts(self, record: GameRecord) -> dict[str, Any]:
        match = record.match
        names = []
        for side, policy in enumerate(match.seats.policies):
            bot = match.bot if match.bot is not None and side == match.side else None
            names.append(bot or ("newest" if policy == NEWEST else f"version-{policy}"))
        return {"run": self._run, "source": self._source.name, "players": names, "kind": "training",
                "variant": record.variant.name}

    def _send(self, game: str, chunk: bytes, facts: ChunkEntry) -> None:
        self._source.put("chunk", game, chunk, {"time": round(facts.time, 2), "steps": facts.steps})

    def _show(self, camera: Camera, side: int, policy_debug: Mapping[str, Array], buffer: StepBuffer, row: int,
              slot: int, environment: Environment) -> None:
        record_policy_outputs(camera, side, policy_debug, values=buffer.values[row, slot, side],
                              version=int(buffer.versions[row, slot, side]), actions=buffer.actions[row, slot, side],
                              available=buffer.observations["available"][row, slot, side],
                              units=environment.slot_units(slot, side), buildings=self._buildings)
