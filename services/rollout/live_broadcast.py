"""A group's live games: while somebody watches one, what happens in it and what its policies think goes to him."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dota.config import GameConfig, RewardConfig
from dota.rewards import signal_weights, time_weights
from dota.spaces import Layout
from dota.spectator.camera import Camera, ChunkFacts
from dota.spectator.policy_debug import building_slots, record_policy_outputs
from five.clients.inference import NEWEST, WANT_THOUGHTS, ActResult
from five.services.rollout.env_slots import EnvSlots
from five.services.rollout.environment import Environment, StepResult
from five.services.rollout.matchmaking import GameRecord
from five.services.rollout.step_buffer import SIDES, StepBuffer
from rapid.live_source import LiveSource

log = logging.getLogger(__name__)
FIRST_STEPS = 6  # of the first chunk: who has just begun to watch sees something soon
LISTED = 12  # games that a group lists

Array = npt.NDArray[Any]


class LiveBroadcast:
    """One group's. Called by the group between steps; what nobody watches costs one look at an empty set.

    ``rules`` and ``rewards``: what is played, and what is shown as earned; ``run`` stands in the header.
    """

    def __init__(self, source: LiveSource, run: str, rules: GameConfig, rewards: RewardConfig,
                 statistic_names: Sequence[str]) -> None:
        self._source = source
        self._run = run
        self._rules = rules
        self._rewards = rewards
        self._weights = signal_weights(rewards)
        self._buildings = building_slots(Layout(rules))
        self._cameras: dict[int, tuple[str, Camera]] = {}  # by place
        self._refused: set[str] = set()  # games whose showing failed
        self._outcome: StepResult | None = None
        self._records: Sequence[GameRecord] = ()
        self._columns = {name: list(statistic_names).index(name) for name in ("kills", "net_worth", "level")}

    def update_viewers(self, records: Sequence[GameRecord], streams: EnvSlots, environment: Environment) -> None:
        """Before a step is asked for: begins with games that somebody watches now, and lets the others go."""
        self._records = records
        if self._cameras or self._source.watched.games:
            self._run_guarded(lambda: self._update_viewers(records, streams, environment))
            streams.watched[:] = False
            streams.watched[list(self._cameras)] = True
        elif streams.watched.any():
            streams.watched[:] = False

    def _update_viewers(self, records: Sequence[GameRecord], streams: EnvSlots, environment: Environment) -> None:
        for place, record in enumerate(records):
            game = record.match.game_id
            had = self._cameras.get(place)
            wanted = self._source.wants(game) and game not in self._refused
            if had is not None and (had[0] != game or not wanted):
                self._cameras.pop(place)[1].end()
                if had[0] != game:  # it was given up
                    self._source.put("end", had[0])
                had = None
            if wanted and had is None:
                camera = Camera(record.variant.config or self._rules, self._about(record),
                                lambda chunk, facts, game=game: self._send(game, chunk, facts),  # type: ignore[misc]
                                FIRST_STEPS)
                self._cameras[place] = game, camera
                self._source.put("header", game, camera.packed_header())
        # It is seen from the next step on: a game that is played elsewhere is seen with the answer of who plays it.
        environment.watch(self._cameras)

    def add_policy_debug(self, step: int, ring: StepBuffer, streams: EnvSlots, answer: ActResult, environment: Environment) -> None:
        """What the policies made of the step that was last looked at."""
        if self._cameras:
            self._run_guarded(lambda: self._add_policy_debug(step, ring, streams, answer, environment))

    def _add_policy_debug(self, step: int, ring: StepBuffer, streams: EnvSlots, answer: ActResult, environment: Environment) -> None:
        row, rows = ring.row(step), streams.rows
        asked = rows[streams.flags(step).reshape(-1)[rows] & WANT_THOUGHTS != 0]
        at = {int(r): i for i, r in enumerate(asked)}
        for place, (_, camera) in self._cameras.items():
            for side in range(SIDES):
                index = at.get(place * SIDES + side)
                if index is None or not answer.thoughts:
                    continue
                thoughts = {name: array[index] for name, array in answer.thoughts.items()}
                self._show(camera, side, thoughts, ring, row, place, environment)

    def add_step(self, outcome: StepResult, environment: Environment) -> None:
        """After a step."""
        self._outcome = outcome
        if self._cameras:
            self._run_guarded(lambda: self._add_step(outcome, environment))

    def _add_step(self, outcome: StepResult, environment: Environment) -> None:
        for place, (game, camera) in list(self._cameras.items()):
            weights = self._weights * time_weights(outcome.game_time[place], self._rewards)
            if environment.capture(place, camera):
                for side in range(SIDES):
                    camera.record_rewards(side, outcome.signals[place, side] * weights)
            if outcome.winners[place]:
                camera.end()
                del self._cameras[place]
                self._source.put("end", game, facts={"winner": int(outcome.winners[place])})

    def _run_guarded(self, work: Callable[[], None]) -> None:
        """Does something for who watches. A fault of it ends the showing of what is watched now, not the run."""
        try:
            work()
        except Exception:
            log.exception("games of this group can no longer be shown")
            given_up, self._cameras = self._cameras, {}
            self._refused |= {game for game, _ in given_up.values()}
            for game, _ in given_up.values():
                self._source.put("end", game)

    def games(self) -> list[dict[str, Any]]:
        """The group's games, for a list of those in progress."""
        outcome = self._outcome
        found = []
        for place, record in enumerate(self._records[:LISTED]):
            entry: dict[str, Any] = {"game": record.match.game_id, **self._about(record)}
            if outcome is not None:
                sums = {name: np.rint(outcome.statistics[place, :, :, k].sum(axis=1)).astype(int).tolist()
                        for name, k in self._columns.items()}
                seconds = float(outcome.game_time[place])
                entry |= {**sums, "time": round(seconds, 1)}
            entry["wall_seconds"] = round(time.monotonic() - record.began, 1)
            found.append(entry)
        return found

    def _about(self, record: GameRecord) -> dict[str, Any]:
        match = record.match
        names = []
        for side, policy in enumerate(match.seats.policies):
            bot = match.bot if match.bot is not None and side == match.side else None
            names.append(bot or ("newest" if policy == NEWEST else f"version-{policy}"))
        return {"run": self._run, "source": self._source.name, "players": names, "kind": "training",
                "arm": record.variant.name}

    def _send(self, game: str, chunk: bytes, facts: ChunkFacts) -> None:
        self._source.put("chunk", game, chunk, {"time": round(facts.time, 2), "steps": facts.steps})

    def _show(self, camera: Camera, side: int, thoughts: Mapping[str, Array], ring: StepBuffer, row: int, place: int,
              environment: Environment) -> None:
        record_policy_outputs(camera, side, thoughts, values=ring.values[row, place, side],
                      version=int(ring.versions[row, place, side]), actions=ring.actions[row, place, side],
                      available=ring.observations["available"][row, place, side],
                      units=environment.slot_units(place, side), buildings=self._buildings)
