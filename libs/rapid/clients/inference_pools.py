"""Two pools of inference servers as one: some play the newest version, others the past ones.

Past versions take memory and batches of their own; apart from the newest they neither wait for it nor hold it up.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rapid.clients.inference import (
    NEWEST,
    REPLAY,
    RESET,
    RESTORE,
    WANT_STATE,
    WANT_THOUGHTS,
    ActResult,
    InferenceClient,
    ModelInfo,
)

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]


class InferencePools:
    """Asks ``newest`` for the sessions that follow the newest version and ``past`` for the others; used like either."""

    def __init__(self, newest: InferenceClient, past: InferenceClient) -> None:
        self._newest = newest
        self._past = past

    async def act(self, sessions: Ints, policies: Ints, flags: npt.NDArray[np.uint8], observations: Mapping[str, Array],
                  states: Mapping[str, Array] | None = None, replayed_actions: npt.NDArray[np.int16] | None = None
                  ) -> ActResult:
        """One step of n sessions, as InferenceClient.act takes and answers it.

        When one pool knows sessions no longer, those that the other has stepped meanwhile are reported unknown with
        them: asked again they would be stepped twice. Raises what either raises.
        """
        to_newest = np.asarray(policies) == NEWEST
        if to_newest.all() or not to_newest.any():
            client = self._newest if to_newest.all() else self._past
            return await client.act(sessions, policies, flags, observations, states, replayed_actions)
        parts = [np.flatnonzero(to_newest), np.flatnonzero(~to_newest)]
        restored, replayed = np.flatnonzero(flags & RESTORE), np.flatnonzero(flags & REPLAY)
        asked = [client.act(
            sessions[rows], policies[rows], flags[rows], {name: array[rows] for name, array in observations.items()},
            None if states is None else {name: array[np.isin(restored, rows)] for name, array in states.items()},
            None if replayed_actions is None else replayed_actions[np.isin(replayed, rows)])
            for client, rows in zip((self._newest, self._past), parts, strict=True)]
        # Both are waited for: a request that is left under way would step its sessions unseen.
        found = await asyncio.gather(*asked, return_exceptions=True)
        answers = []
        for answer in found:
            if isinstance(answer, BaseException):
                raise answer
            answers.append(answer)
        if any(answer.unknown_sessions.size for answer in answers):
            return ActResult(np.concatenate([
                answer.unknown_sessions if answer.unknown_sessions.size
                else sessions[rows][flags[rows] & (RESET | RESTORE) == 0]
                for answer, rows in zip(answers, parts, strict=True)]))
        return _joined(answers, parts, np.flatnonzero(flags & WANT_STATE), np.flatnonzero(flags & WANT_THOUGHTS))

    async def model(self) -> ModelInfo:
        """What the servers of the newest version serve. Raises CallFailed."""
        return await self._newest.model()

    async def close(self) -> None:
        """Ends both streams."""
        await asyncio.gather(self._newest.close(), self._past.close())

    async def __aenter__(self) -> "InferencePools":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _joined(answers: list[ActResult], parts: list[npt.NDArray[np.intp]], wanted: npt.NDArray[np.intp],
            watched: npt.NDArray[np.intp]) -> ActResult:
    """Both answers in the order of the request; ``wanted`` are the rows that states were asked of, ``watched`` those
    whose thoughts were."""
    n = sum(len(rows) for rows in parts)

    def rows_of(arrays: list[Array], places: list[npt.NDArray[np.intp]], count: int) -> Array:
        joined = np.zeros((count, *arrays[0].shape[1:]), arrays[0].dtype)
        for array, place in zip(arrays, places, strict=True):
            joined[place] = array
        return joined

    def named_rows(named: list[dict[str, Array]], chosen: npt.NDArray[np.intp]) -> dict[str, Array]:
        # A part of which nothing was wanted has nothing.
        places = [np.flatnonzero(np.isin(chosen, rows)) for rows in parts]
        some = [i for i, place in enumerate(places) if len(place)]
        return {name: rows_of([named[i][name] for i in some], [places[i] for i in some], len(chosen))
                for name in (named[some[0]] if some else ())}

    return ActResult(
        np.zeros(0, np.int64), rows_of([a.actions for a in answers], parts, n),
        rows_of([a.log_probabilities for a in answers], parts, n), rows_of([a.values for a in answers], parts, n),
        rows_of([a.versions for a in answers], parts, n), named_rows([a.states for a in answers], wanted),
        named_rows([a.auxiliary for a in answers], wanted), max(a.queue_us for a in answers),
        max(a.forward_us for a in answers), answers[0].reward_std, max(a.seconds for a in answers),
        named_rows([a.thoughts for a in answers], watched))


def inference_client(newest: InferenceClient, past: InferenceClient | None) -> InferenceClient | InferencePools:
    """``newest`` for everything, or with the other pool for the past."""
    return newest if past is None else InferencePools(newest, past)
