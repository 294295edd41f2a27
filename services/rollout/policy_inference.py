"""Inference requests of a group, and replay of recorded steps that rebuilds lost recurrent states."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from five.clients.inference import REPLAY, RESET, RESTORE, ActResult
from five.services.rollout.env_slots import Bools, EnvSlots, Ints
from five.services.rollout.step_buffer import SIDES, Array, Arrays, StepBuffer
from rapid.packed_array import PackedRows
from rapid.rpc.errors import CallFailed, StatusCode
from rapid.rpc.fencing_epoch import is_stale_epoch


class InferenceLost(ConnectionError):
    """No answer arrived: it is unknown whether the server evaluated the step, and so are its states."""


class PastVersionMissing(LookupError):
    """A requested past version is not available."""


class Inference(Protocol):
    """Stream to inference (five.clients.inference.InferenceClient)."""

    async def act(self, sessions: Ints, policies: Ints, flags: npt.NDArray[np.uint8],
                  observations: Mapping[str, Array | PackedRows],
                  states: Arrays | None = None, replayed_actions: npt.NDArray[np.int16] | None = None
                  ) -> ActResult: ...

    async def close(self) -> None: ...


async def act(inference: Inference, buffer: StepBuffer, slots: EnvSlots, step: int) -> ActResult:
    """Request the actions of all acting sides at ``step``.

    Raises InferenceLost. Call `replay_and_act` then, and for sides whose sessions the answer does not know.
    """
    rows = slots.rows
    return await _request(inference, buffer, slots, rows, step, slots.flags(step).ravel()[rows])


async def replay_and_act(inference: Inference, buffer: StepBuffer, slots: EnvSlots, step: int, lost: Bools
                         ) -> ActResult:
    """Request the actions at ``step`` after the states of the sides in ``lost`` bool [G, 2] were lost.

    Each lost side is restored to its last known state and replays its recorded steps before the request. Raises
    InferenceLost when that fails as well.
    """
    rows = np.flatnonzero(lost.ravel())
    known = slots.boundary.ravel()[rows]
    start_step = np.repeat(slots.start_step, SIDES)[rows]
    first = int(known.min(initial=step))
    for past in range(first, step):
        there = known <= past
        at = rows[there]
        flags = np.full(len(at), REPLAY, np.uint8)
        begins = known[there] == past
        fresh = begins & (start_step[there] == past)
        flags[fresh] |= RESET
        flags[begins & ~fresh] |= RESTORE
        answer = await _request(inference, buffer, slots, at, past, flags)
        if len(answer.unknown_sessions):
            raise InferenceLost("sessions were lost again during replay")
    all_rows = slots.rows
    flags = slots.flags(step).ravel()[all_rows]
    answer = await _request(inference, buffer, slots, all_rows, step, flags)
    if len(answer.unknown_sessions):
        raise InferenceLost("more sessions were lost during replay")
    return answer


async def _request(inference: Inference, buffer: StepBuffer, slots: EnvSlots, rows: Ints, step: int,
                   flags: npt.NDArray[np.uint8]) -> ActResult:
    """Return inference's answer for the sides in ``rows`` at a step that the buffer still holds."""
    sides = buffer.games * SIDES
    observations = buffer.request_observations(step, rows)
    states = replayed = None
    restore = flags & RESTORE != 0
    if restore.any():
        states = {name: state.reshape(sides, *state.shape[2:])[rows[restore]]
                  for name, state in slots.boundary_states.items()}
    replay = flags & REPLAY != 0
    if replay.any():
        actions = buffer.actions[buffer.row(step)]
        replayed = actions.reshape(sides, *actions.shape[2:])[rows[replay]]
    try:
        return await inference.act(slots.sessions.ravel()[rows], slots.policies.ravel()[rows], flags,
                                   observations, states, replayed)
    except CallFailed as failure:
        if failure.code is StatusCode.NOT_FOUND:
            raise PastVersionMissing(str(failure)) from failure
        # After the end of its epoch this process is about to restart.
        if failure.may_retry or failure.code is StatusCode.INTERNAL or is_stale_epoch(failure):
            raise InferenceLost(str(failure)) from failure
        raise
