"""Agents of a game with people: observations and actions, without blocking the game."""

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from five.clients.inference import CLOSE, REPLAY, RESET, RESTORE, WANT_STATE, ActResult
from five.services.play import metrics as page
from rapid.rpc.errors import CallFailed, StatusCode
from rapid.rpc.fencing_epoch import is_stale_epoch

log = logging.getLogger(__name__)
Array = npt.NDArray[Any]
STATE_EVERY = 16  # timesteps between two stored states; at most so many are replayed after a server is lost
REBUILD_TRIES = 20  # attempts to restore sessions that a server loses again


class Inference(Protocol):
    """Interface of five.clients.inference_pools.InferencePools that a game uses."""

    async def act(self, sessions: Array, policies: Array, flags: Array, observations: Mapping[str, Array],
                  states: Mapping[str, Array] | None = None, replayed_actions: Array | None = None) -> ActResult: ...


@dataclass(frozen=True)
class Answer:
    """Agents' actions for a timestep: ``actions`` int16 [2, H, 6], zeros for a side without an agent; ``seconds`` it
    took."""

    timestep: int
    actions: npt.NDArray[np.int16]
    seconds: float


class AgentsLost(RuntimeError):
    """Inference has refused permanently, so the agents cannot continue."""


class Agents:
    """Sides of one game that versions play, ``versions`` by side.

    Each side has one session for the whole game, also while people control its heroes. A policy that takes over a hero
    from a person has therefore seen the whole game. Call ``request`` at each timestep's observation, and
    ``take_answer`` before the timestep's last engine frame. Only one request is pending at a time. A late answer
    applies to the timestep in which it arrives, and the policy does not see the timesteps in between.
    """

    def __init__(self, inference: Inference, versions: Mapping[int, int], heroes: int) -> None:
        self._inference = inference
        self._sides = np.array(sorted(versions), np.int64)
        self._policies = np.array([versions[side] for side in sorted(versions)], np.int64)
        self._sessions = np.array([secrets.randbits(62) for _ in versions], np.int64)
        self._heroes = heroes
        self._pending: asyncio.Task[Answer] | None = None
        self._steps = 0
        self._states: dict[str, Array] | None = None  # before the first step of ``_past``; None at the game's start
        self._past: deque[tuple[dict[str, Array], Array]] = deque()  # observations and chosen actions since then
        self._is_failing = False  # whether the last request has failed, which is logged once
        self.late = 0
        self.seconds = 0.0  # latency of the last answer

    @property
    def any(self) -> bool:
        """Return whether a version plays a side."""
        return bool(len(self._sides))

    def request(self, timestep: int, observations: Mapping[str, Array]) -> None:
        """Request actions for a timestep's observation, arrays of leading dimension [2], unless a request is pending.
        """
        if not self.any or (self._pending is not None and not self._pending.done()):
            return
        self._result()
        # Copy the rows: the game writes the next observation into the same arrays.
        seen = {name: array[self._sides] for name, array in observations.items()}
        self._pending = asyncio.get_running_loop().create_task(self._act(timestep, seen))

    def take_answer(self, timestep: int) -> Answer | None:
        """Return the answer to that timestep's observation or, if late, to an earlier one; None if none has arrived.

        Missing and late answers are counted. Raises AgentsLost.
        """
        if not self.any:
            return None
        answer = self._result() if self._pending is not None and self._pending.done() else None
        if answer is None or answer.timestep != timestep:
            self.late += 1
            page.LATE_ANSWERS.inc()
        return answer

    def _result(self) -> Answer | None:
        if self._pending is None:
            return None
        task, self._pending = self._pending, None
        try:
            answer = task.result()
        except CallFailed as failure:
            if not (failure.may_retry or failure.code is StatusCode.INTERNAL or is_stale_epoch(failure)):
                raise AgentsLost(str(failure)) from failure
            if not self._is_failing:
                log.warning("inference fails, the agents' heroes keep their orders until it answers: %s", failure)
            self._is_failing = True
            return None
        self._is_failing = False
        return answer

    async def _act(self, timestep: int, seen: dict[str, Array]) -> Answer:
        loop = asyncio.get_running_loop()
        began = loop.time()
        wants_state = self._steps % STATE_EVERY == 0
        flags = np.full(len(self._sides), (WANT_STATE if wants_state else 0) | (RESET if self._steps == 0 else 0),
                        np.uint8)
        answer = await self._inference.act(self._sessions, self._policies, flags, seen)
        tries = 0
        while answer.unknown_sessions.size:
            tries += 1
            if tries > REBUILD_TRIES:
                raise CallFailed(StatusCode.UNAVAILABLE, "inference", "Act",
                                 f"the server lost the sessions {tries} times in a row")
            answer = await self._rebuild_sessions(flags, seen)
        if wants_state:
            self._states = answer.states if self._steps else None
            self._past.clear()
        self._past.append((seen, answer.actions))
        self._steps += 1
        actions = np.zeros((2, self._heroes, answer.actions.shape[2]), np.int16)
        actions[self._sides] = answer.actions
        self.seconds = loop.time() - began
        page.ANSWER_SECONDS.observe(self.seconds)
        return Answer(timestep, actions, self.seconds)

    async def _rebuild_sessions(self, flags: Array, seen: dict[str, Array]) -> ActResult:
        """Restore the sessions, replay the steps since, and return the answer to the current step.

        ``unknown_sessions`` of the result lists sessions that were lost again.
        """
        flags = flags & WANT_STATE
        for i, (past, chosen) in enumerate(self._past):
            first = (RESET if self._states is None else RESTORE) if i == 0 else 0
            answer = await self._inference.act(
                self._sessions, self._policies, np.full(len(flags), REPLAY | first, np.uint8), past,
                self._states if first == RESTORE else None, chosen)
            if answer.unknown_sessions.size:
                return answer
        if not self._past:
            flags = flags | RESET
        return await self._inference.act(self._sessions, self._policies, flags, seen)

    async def close(self, observations: Mapping[str, Array]) -> None:
        """End the game's sessions at the inference server."""
        if not self.any:
            return
        if self._pending is not None:
            self._pending.cancel()
        try:
            await self._inference.act(self._sessions, self._policies, np.full(len(self._sides), CLOSE, np.uint8),
                                      {name: array[self._sides] for name, array in observations.items()})
        except CallFailed:
            pass  # the sessions expire by themselves
