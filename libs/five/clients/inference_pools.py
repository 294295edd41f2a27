"""Inference servers as one client: some play the newest version, and each past version has a server of its own.

A past version takes memory and is a batch of its own, so that of several servers each owns some. Every client finds the
same owner, by the version's number and the servers' addresses alone (rendezvous hashing): when a server comes or goes,
only the versions change hands that it takes or leaves.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from five.clients.inference import (
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
from rapid.packed_array import PackedRows
from rapid.rpc.errors import CallFailed
from rapid.rpc.resolve import ServerAddress, resolve_servers

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
log = logging.getLogger(__name__)
LOOK_SECONDS = 15.0  # how long servers are taken to be those that were looked up
AWAY_SECONDS = 30.0  # how long a server that was lost is passed over
IDLE_SECONDS = 120.0  # after so long without a question a server's stream is ended


def owner_server(version: int, servers: Sequence[str]) -> str:
    """Which of the servers, one at least, has a past version."""
    return max(servers, key=lambda server: (
        blake2b(f"{version}/{server}".encode(), digest_size=8).digest(), server))


class PastServers:
    """The servers that past versions are played on: one client each, made when its first version is asked for.

    ``connect`` makes a client of one server. A server that was lost is passed over for a while; its versions are then
    the next one's. Of a server whose versions are no longer played the stream is ended: with hundreds of servers each
    client would come to have one to all of them.
    """

    def __init__(self, addresses: Sequence[str], connect: Callable[[ServerAddress], InferenceClient]) -> None:
        self._addresses = list(addresses)
        self._connect = connect
        self._servers: dict[str, ServerAddress] = {}
        self._looked = 0.0
        self._looking: asyncio.Task[None] | None = None
        self._clients: dict[str, InferenceClient] = {}
        self._asked: dict[str, float] = {}  # when each client was last wanted
        self._away: dict[str, float] = {}

    async def look(self) -> int:
        """How many servers there are. Only the first look waits for the answer; later ones are brought up to date
        beside."""
        if not self._servers:
            await self._refresh()
        elif self._looking is None and asyncio.get_running_loop().time() - self._looked >= LOOK_SECONDS:
            self._looking = asyncio.get_running_loop().create_task(self._refresh())
        return len(self._servers)

    async def _refresh(self) -> None:
        try:
            found = await resolve_servers(self._addresses)
            self._servers = {target.address: target for target in found} or self._servers
            await self._end_idle()
        finally:
            self._looked = asyncio.get_running_loop().time()
            self._looking = None

    async def _end_idle(self) -> None:
        now = asyncio.get_running_loop().time()
        idle = [server for server in self._clients if now - self._asked[server] > IDLE_SECONDS]
        await asyncio.gather(*(self._clients.pop(server).close() for server in idle))

    def owner(self, version: int) -> str:
        """The address of the server that has a version. `look` goes before."""
        now = asyncio.get_running_loop().time()
        there = [server for server in self._servers if self._away.get(server, 0.0) <= now]
        return owner_server(version, there or list(self._servers))

    def client(self, server: str) -> InferenceClient:
        """The client of a server that `owner` named."""
        if server not in self._clients:
            self._clients[server] = self._connect(self._servers[server])
        self._asked[server] = asyncio.get_running_loop().time()
        return self._clients[server]

    def lost(self, server: str) -> None:
        """A server did not answer."""
        log.warning("inference server %s is lost, its past versions go to others", server)
        self._away[server] = asyncio.get_running_loop().time() + AWAY_SECONDS

    async def close(self) -> None:
        """Ends all streams."""
        if self._looking is not None:
            self._looking.cancel()
        await asyncio.gather(*(client.close() for client in self._clients.values()))


class InferencePools:
    """Asks ``newest`` for the sessions that follow the newest version, and for each other session the server that has
    its version; used like either. Where there is no server but one, it is asked for all in one request."""

    def __init__(self, newest: InferenceClient, past: PastServers, shared: bool = False) -> None:
        """``shared``: the servers of past versions play the newest one too."""
        self._newest = newest
        self._past = past
        self._shared = shared

    async def act(self, sessions: Ints, policies: Ints, flags: npt.NDArray[np.uint8],
                  observations: Mapping[str, Array | PackedRows],
                  states: Mapping[str, Array] | None = None, replayed_actions: npt.NDArray[np.int16] | None = None
                  ) -> ActResult:
        """One step of n sessions, as InferenceClient.act takes and answers it.

        When one server knows sessions no longer, those that the others have stepped meanwhile are reported unknown with
        them: asked again they would be stepped twice. Raises what any raises.
        """
        policies = np.asarray(policies)
        if (policies == NEWEST).all() or (await self._past.look() == 1 and self._shared):
            return await self._newest.act(sessions, policies, flags, observations, states, replayed_actions)
        servers = {int(v): "" if v == NEWEST else self._past.owner(int(v)) for v in np.unique(policies)}
        asked = sorted(set(servers.values()))
        of_row = np.array([asked.index(servers[int(v)]) for v in policies])
        parts = [np.flatnonzero(of_row == i) for i in range(len(asked))]
        restored, replayed = np.flatnonzero(flags & RESTORE), np.flatnonzero(flags & REPLAY)

        async def ask(server: str, rows: npt.NDArray[np.intp]) -> ActResult:
            client = self._past.client(server) if server else self._newest
            try:
                return await client.act(
                    sessions[rows], policies[rows], flags[rows],
                    {name: array[rows] for name, array in observations.items()},
                    None if states is None else {name: array[np.isin(restored, rows)]
                                                 for name, array in states.items()},
                    None if replayed_actions is None else replayed_actions[np.isin(replayed, rows)])
            except CallFailed as failure:
                if server and failure.may_retry:
                    self._past.lost(server)
                raise

        # All are waited for: a request that is left under way would step its sessions unseen.
        found = await asyncio.gather(*(ask(server, rows) for server, rows in zip(asked, parts, strict=True)),
                                     return_exceptions=True)
        answers = []
        for answer in found:
            if isinstance(answer, BaseException):
                raise answer
            answers.append(answer)
        if len(answers) == 1:
            return answers[0]
        if any(answer.unknown_sessions.size for answer in answers):
            return ActResult(np.concatenate([
                answer.unknown_sessions if answer.unknown_sessions.size
                else sessions[rows][flags[rows] & (RESET | RESTORE) == 0]
                for answer, rows in zip(answers, parts, strict=True)]))
        return _joined(answers, parts, np.flatnonzero(flags & WANT_STATE), np.flatnonzero(flags & WANT_THOUGHTS))

    async def want(self, version: int) -> bool:
        """Whether a past version is in the memory of its server; if not, its load has begun where there is room. False
        also when the server does not answer."""
        with contextlib.suppress(CallFailed):
            alone = await self._past.look() == 1 and self._shared
            client = self._newest if alone else self._past.client(self._past.owner(version))
            return version in (await client.model((version,))).resident_versions
        return False

    async def model(self) -> ModelInfo:
        """What the servers of the newest version serve. Raises CallFailed."""
        return await self._newest.model()

    async def close(self) -> None:
        """Ends all streams."""
        await asyncio.gather(self._newest.close(), self._past.close())

    async def __aenter__(self) -> "InferencePools":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _joined(answers: list[ActResult], parts: list[npt.NDArray[np.intp]], wanted: npt.NDArray[np.intp],
            watched: npt.NDArray[np.intp]) -> ActResult:
    """The answers in the order of the request; ``wanted`` are the rows that states were asked of, ``watched`` those
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


def inference_pools(connect: Callable[[Sequence[str], str], InferenceClient], addresses: Sequence[str],
                    past_addresses: Sequence[str]) -> InferencePools:
    """Both pools of a configuration; ``past_addresses`` empty: those of ``addresses`` play past versions as well.
    ``connect`` makes a client of addresses, whose servers' certificates bear a name ('': their own)."""
    past = PastServers(past_addresses or addresses, lambda target: connect([target.address], target.name))
    return InferencePools(connect(addresses, ""), past, shared=not past_addresses)
