"""Agents of a played game: observations and actions without blocking the game."""

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
STATE_EVERY = 16  # timesteps between two states that are kept: what is played again when a server is lost
REBUILD_TRIES = 20  # of a server that loses what it was just given


class Inference(Protocol):
    """Part of five.clients.inference_pools.InferencePools that a game needs."""

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
    """Permanent refusal by inference, after which the agents cannot continue."""


class Agents:
    """Sides of one game that versions play, ``versions`` by side.

    One session for each side lasts the whole game, for people and agents alike: its observations are the side's, so
    that a policy which takes over a hero from a person has seen the whole game. Call ``ask`` at each timestep's
    observation, and ``take`` before the timestep's last engine frame. Only one request is pending: a late answer
    applies to the timestep in which it arrives, and the policy never sees the timesteps between.
    """

    def __init__(self, inference: Inference, versions: Mapping[int, int], heroes: int) -> None:
        self._inference = inference
        self._sides = np.array(sorted(versions), np.int64)
        self._policies = np.array([versions[side] for side in sorted(versions)], np.int64)
        self._sessions = np.array([secrets.randbits(62) for _ in versions], np.int64)
        self._heroes = heroes
        self._asked: asyncio.Task[Answer] | None = None
        self._steps = 0
        self._states: dict[str, Array] | None = None  # before the first of ``_past``; None: that is the game's first
        self._past: deque[tuple[dict[str, Array], Array]] = deque()  # observations, and what was chosen at them
        self.late = 0
        self.seconds = 0.0  # that the last answer took

    @property
    def any(self) -> bool:
        """Return whether a version plays a side."""
        return bool(len(self._sides))

    def ask(self, timestep: int, observations: Mapping[str, Array]) -> None:
        """Request actions for a timestep's observation, arrays of leading dimension [2], unless a request is pending.
        """
        if not self.any or (self._asked is not None and not self._asked.done()):
            return
        self._result()
        # The game writes the next observation into the same arrays.
        seen = {name: array[self._sides] for name, array in observations.items()}
        self._asked = asyncio.get_running_loop().create_task(self._ask(timestep, seen))

    def take(self, timestep: int) -> Answer | None:
        """Return the answer to that timestep's observation, or a late one to an earlier observation; None if none has
        arrived.

        Late answers are counted. Raises AgentsLost.
        """
        if not self.any:
            return None
        answer = self._result() if self._asked is not None and self._asked.done() else None
        if answer is None or answer.timestep != timestep:
            self.late += 1
            page.LATE_ANSWERS.inc()
        return answer

    def _result(self) -> Answer | None:
        if self._asked is None:
            return None
        task, self._asked = self._asked, None
        try:
            return task.result()
        except CallFailed as failure:
            if failure.may_retry or failure.code is StatusCode.INTERNAL or is_stale_epoch(failure):
                log.warning("the agents' answer was lost: %s", failure)
                return None
            raise AgentsLost(str(failure)) from failure

    async def _ask(self, timestep: int, seen: dict[str, Array]) -> Answer:
        loop = asyncio.get_running_loop()
        began = loop.time()
        wants = self._steps % STATE_EVERY == 0
        flags = np.full(len(self._sides), (WANT_STATE if wants else 0) | (RESET if self._steps == 0 else 0), np.uint8)
        answer = await self._inference.act(self._sessions, self._policies, flags, seen)
        tries = 0
        while answer.unknown_sessions.size:
            tries += 1
            if tries > REBUILD_TRIES:
                raise CallFailed(StatusCode.UNAVAILABLE, "inference", "Act", "it loses sessions again and again")
            answer = await self._rebuilt(flags, seen)
        if wants:
            self._states = answer.states if self._steps else None
            self._past.clear()
        self._past.append((seen, answer.actions))
        self._steps += 1
        actions = np.zeros((2, self._heroes, answer.actions.shape[2]), np.int16)
        actions[self._sides] = answer.actions
        self.seconds = loop.time() - began
        page.ANSWER_SECONDS.observe(self.seconds)
        return Answer(timestep, actions, self.seconds)

    async def _rebuilt(self, flags: Array, seen: dict[str, Array]) -> ActResult:
        """Return the answer after the sessions were restored and replayed. ``unknown_sessions`` lists those lost again.
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
        if self._asked is not None:
            self._asked.cancel()
        try:
            await self._inference.act(self._sessions, self._policies, np.full(len(self._sides), CLOSE, np.uint8),
                                      {name: array[self._sides] for name, array in observations.items()})
        except CallFailed:
            pass  # it forgets them by itself when their lease ends
