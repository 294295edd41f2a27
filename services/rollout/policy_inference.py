"""What a rollout asks of inference, and how lost sessions are rebuilt so that recurrence goes on as if nothing was."""

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
    """No answer: whether the step was evaluated is not known, so the states on the server are not either."""


class VersionMissing(LookupError):
    """A past version that was asked for cannot be had."""


class Inference(Protocol):
    """One stream to inference (five.clients.inference.InferenceClient)."""

    async def act(self, sessions: Ints, policies: Ints, flags: npt.NDArray[np.uint8],
                  observations: Mapping[str, Array | PackedRows],
                  states: Arrays | None = None, replayed_actions: npt.NDArray[np.int16] | None = None
                  ) -> ActResult: ...

    async def close(self) -> None: ...


async def act(inference: Inference, ring: StepBuffer, streams: EnvSlots, step: int) -> ActResult:
    """Plays ``step`` for all acting sides of the group. Raises InferenceLost; call `replay_and_act` then, and also for the
    sides whose sessions the answer does not know."""
    rows = streams.rows
    return await _ask(inference, ring, streams, rows, step, streams.flags(step).reshape(-1)[rows])


async def replay_and_act(inference: Inference, ring: StepBuffer, streams: EnvSlots, step: int, lost: Bools) -> ActResult:
    """Plays ``step`` after the states of the sides in ``lost`` bool [G, 2] were lost.

    Each is put back to its last known state and led through what it saw and did since; then the step is asked for.
    Raises InferenceLost when that does not get through either.
    """
    rows = np.flatnonzero(lost.reshape(-1))
    known = streams.boundary.reshape(-1)[rows]
    start_step = np.repeat(streams.start_step, SIDES)[rows]
    first = int(known.min(initial=step))
    for past in range(first, step):
        there = known <= past
        if not there.any():
            continue
        at = rows[there]
        flags = np.full(len(at), REPLAY, np.uint8)
        begins = known[there] == past
        fresh = begins & (start_step[there] == past)
        flags[fresh] |= RESET
        flags[begins & ~fresh] |= RESTORE
        answer = await _ask(inference, ring, streams, at, past, flags)
        if len(answer.unknown_sessions):
            raise InferenceLost("sessions were lost again while they were rebuilt")
    all_rows = streams.rows
    flags = streams.flags(step).reshape(-1)[all_rows]
    answer = await _ask(inference, ring, streams, all_rows, step, flags)
    if len(answer.unknown_sessions):
        raise InferenceLost("more sessions were lost while others were rebuilt")
    return answer


async def _ask(inference: Inference, ring: StepBuffer, streams: EnvSlots, rows: Ints, step: int,
               flags: npt.NDArray[np.uint8]) -> ActResult:
    """Inference's answer for the sides in ``rows`` at a step that is still in the ring."""
    places = ring.games * SIDES
    observations = ring.request_observations(step, rows)
    states = replayed = None
    restore = flags & RESTORE != 0
    if restore.any():
        states = {name: state.reshape(places, *state.shape[2:])[rows[restore]]
                  for name, state in streams.boundary_states.items()}
    replay = flags & REPLAY != 0
    if replay.any():
        actions = ring.actions[ring.row(step)]
        replayed = actions.reshape(places, *actions.shape[2:])[rows[replay]]
    try:
        return await inference.act(streams.sessions.reshape(-1)[rows], streams.policies.reshape(-1)[rows], flags,
                                   observations, states, replayed)
    except CallFailed as failure:
        if failure.code is StatusCode.NOT_FOUND:
            raise VersionMissing(str(failure)) from failure
        # Of an epoch that is over: this process is about to be renewed, and waits for it.
        if failure.may_retry or failure.code is StatusCode.INTERNAL or is_stale_epoch(failure):
            raise InferenceLost(str(failure)) from failure
        raise
