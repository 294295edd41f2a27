"""Client of all inference servers: some serve the newest version, and each past version has a server.

A past version takes memory and forms a batch of its own, so each server owns some of them. Every client finds the same
owner from the version's number and the servers' addresses (rendezvous hashing). When a server joins or leaves, only its
versions move.
"""

import asyncio
import logging
import math
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
    WANT_POLICY_DEBUG,
    WANT_STATE,
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
REFRESH_SECONDS = 15.0  # between name resolutions
AWAY_SECONDS = 30.0  # for which a lost server is skipped at least
MOVE_SECONDS = 10.0  # without a past server after which its versions move to another one
ASKED = 3  # past servers at most that are asked whether any responds
IDLE_SECONDS = 120.0  # after which an unused stream is closed


def owner_server(version: int, servers: Sequence[str]) -> str:
    """Return the server, of at least one, that owns a past version."""
    return max(servers, key=lambda server: (
        blake2b(f"{version}/{server}".encode(), digest_size=8).digest(), server))


async def does_respond(client: InferenceClient) -> bool:
    """Return whether a server of the client answers, if only with a refusal."""
    try:
        await client.model()
    except CallFailed as failure:
        return not failure.may_retry
    return True


class PastServers:
    """The servers of past versions, with one client each, created on first use.

    ``connect`` creates a client of one server. A lost server is skipped until it responds again, and the next server
    has its versions. The stream of a server whose versions are no longer played is closed; otherwise each client would
    connect to hundreds of servers.
    """

    def __init__(self, addresses: Sequence[str], connect: Callable[[ServerAddress], InferenceClient]) -> None:
        self._addresses = list(addresses)
        self._connect = connect
        self._servers: dict[str, ServerAddress] = {}
        self._resolved_at = 0.0
        self._refreshing: asyncio.Task[None] | None = None
        self._clients: dict[str, InferenceClient] = {}
        self._last_used: dict[str, float] = {}  # by server
        self._away: dict[str, float] = {}  # lost servers, and the loop time from which they are asked again

    async def resolve(self) -> int:
        """Return the number of servers. Only the first call waits for name resolution; later calls refresh in the
        background."""
        if not self._servers:
            await self._refresh()
        elif self._refreshing is None and asyncio.get_running_loop().time() - self._resolved_at >= REFRESH_SECONDS:
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh())
        return len(self._servers)

    async def _refresh(self) -> None:
        try:
            found = await resolve_servers(self._addresses, list(self._servers.values()))
            self._servers = {target.address: target for target in found} or self._servers
            await self._end_idle()
            await self._readmit()
        finally:
            self._resolved_at = asyncio.get_running_loop().time()
            self._refreshing = None

    async def _end_idle(self) -> None:
        now = asyncio.get_running_loop().time()
        idle = [server for server in self._clients if now - self._last_used[server] > IDLE_SECONDS]
        await asyncio.gather(*(self._clients.pop(server).close() for server in idle))

    async def _readmit(self) -> None:
        """Use the lost servers again that respond. Sessions sent to one that does not would wait for it again."""
        now = asyncio.get_running_loop().time()
        self._away = {server: until for server, until in self._away.items() if server in self._servers}
        due = [server for server, until in self._away.items() if until <= now]
        respond = await asyncio.gather(*(does_respond(self.client(server)) for server in due))
        for server, responds in zip(due, respond, strict=True):
            if responds and self._away.get(server, math.inf) <= now:  # not lost once more meanwhile
                del self._away[server]

    def owner(self, version: int) -> str:
        """Return the address of the server that owns a version. Call `resolve` first."""
        available = [server for server in self._servers if server not in self._away]
        return owner_server(version, available or list(self._servers))

    def has_others(self, server: str) -> bool:
        """Return whether the versions of a server can move to another one."""
        return any(other != server and other not in self._away for other in self._servers)

    def client(self, server: str) -> InferenceClient:
        """Return the client of a server returned by `owner`."""
        if server not in self._clients:
            self._clients[server] = self._connect(self._servers[server])
        self._last_used[server] = asyncio.get_running_loop().time()
        return self._clients[server]

    async def responds(self) -> bool:
        """Return whether a server responds, of `ASKED` that are asked."""
        await self.resolve()
        servers = sorted(self._servers, key=lambda server: self._away.get(server, 0.0))[:ASKED]
        return any(await asyncio.gather(*(does_respond(self.client(server)) for server in servers)))

    def mark_lost(self, server: str) -> None:
        """Skip a server until it responds, because it did not."""
        if server not in self._away:
            log.warning("inference server lost, its past versions move to others server=%s", server)
        self._away[server] = asyncio.get_running_loop().time() + AWAY_SECONDS

    async def close(self) -> None:
        """Close all streams."""
        if self._refreshing is not None:
            self._refreshing.cancel()
        await asyncio.gather(*(client.close() for client in self._clients.values()))


class InferencePools:
    """Client with the interface of InferenceClient that splits requests over servers.

    Sessions of the newest version go to ``newest``, every other session to the server of its version. With a single
    server one request has all sessions.
    """

    def __init__(self, newest: InferenceClient, past: PastServers, shared: bool = False) -> None:
        """With ``shared`` the servers of past versions serve the newest one too."""
        self._newest = newest
        self._past = past
        self._shared = shared

    async def act(self, sessions: Ints, policies: Ints, flags: npt.NDArray[np.uint8],
                  observations: Mapping[str, Array | PackedRows],
                  states: Mapping[str, Array] | None = None, replayed_actions: npt.NDArray[np.int16] | None = None
                  ) -> ActResult:
        """Step n sessions; arguments and result are those of InferenceClient.act.

        When one server reports unknown sessions, sessions stepped by the other servers are reported unknown too,
        because a repeated request would step them twice. Raises what InferenceClient.act raises.
        """
        policies = np.asarray(policies)
        if (policies == NEWEST).all() or (await self._past.resolve() == 1 and self._shared):
            return await self._newest.act(sessions, policies, flags, observations, states, replayed_actions)
        servers = {int(v): "" if v == NEWEST else self._past.owner(int(v)) for v in np.unique(policies)}
        targets = sorted(set(servers.values()))
        # Before anything is awaited: a refresh may remove a server.
        clients = [self._past.client(server) if server else self._newest for server in targets]
        of_row = np.array([targets.index(servers[int(v)]) for v in policies])
        parts = [np.flatnonzero(of_row == i) for i in range(len(targets))]
        restored, replayed = np.flatnonzero(flags & RESTORE), np.flatnonzero(flags & REPLAY)

        async def act_on(server: str, client: InferenceClient, rows: npt.NDArray[np.intp]) -> ActResult:
            # All games of the caller wait for this server, so it is left soon where another one can take over.
            patience = MOVE_SECONDS if server and self._past.has_others(server) else math.inf
            try:
                return await client.act(
                    sessions[rows], policies[rows], flags[rows],
                    {name: array[rows] for name, array in observations.items()},
                    None if states is None else {name: array[np.isin(restored, rows)]
                                                 for name, array in states.items()},
                    None if replayed_actions is None else replayed_actions[np.isin(replayed, rows)], patience)
            except CallFailed as failure:
                if server and failure.may_retry:
                    self._past.mark_lost(server)
                raise

        # Wait for all: an abandoned request would step its sessions unnoticed.
        found = await asyncio.gather(*(act_on(*each) for each in zip(targets, clients, parts, strict=True)),
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
        return _merge(answers, parts, np.flatnonzero(flags & WANT_STATE), np.flatnonzero(flags & WANT_POLICY_DEBUG))

    async def want(self, version: int) -> bool:
        """Return whether a past version is loaded at its server. If not, the server starts to load it where memory
        allows.

        False also when the server does not respond; the next call then asks another one.
        """
        alone = await self._past.resolve() == 1 and self._shared
        server = "" if alone else self._past.owner(version)
        client = self._past.client(server) if server else self._newest
        try:
            return version in (await client.model((version,))).resident_versions
        except CallFailed as failure:
            if server and failure.may_retry:
                self._past.mark_lost(server)
            return False

    async def model(self) -> ModelInfo:
        """Return the model of the newest version's servers. Raise CallFailed."""
        return await self._newest.model()

    async def responds(self) -> bool:
        """Return whether a server of the newest version responds, and one of past versions."""
        return await does_respond(self._newest) and (self._shared or await self._past.responds())

    async def close(self) -> None:
        """Close all streams."""
        await asyncio.gather(self._newest.close(), self._past.close())

    async def __aenter__(self) -> "InferencePools":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _merge(answers: list[ActResult], parts: list[npt.NDArray[np.intp]], with_state: npt.NDArray[np.intp],
           with_debug: npt.NDArray[np.intp]) -> ActResult:
    """Merge the responses in the order of the request.

    ``with_state`` are the rows with WANT_STATE, ``with_debug`` those with WANT_POLICY_DEBUG.
    """
    n = sum(len(rows) for rows in parts)

    def rows_of(arrays: list[Array], positions: list[npt.NDArray[np.intp]], count: int) -> Array:
        joined = np.zeros((count, *arrays[0].shape[1:]), arrays[0].dtype)
        for array, rows in zip(arrays, positions, strict=True):
            joined[rows] = array
        return joined

    def named_rows(named: list[dict[str, Array]], chosen: npt.NDArray[np.intp]) -> dict[str, Array]:
        # A part without chosen rows has no arrays.
        positions = [np.flatnonzero(np.isin(chosen, rows)) for rows in parts]
        some = [i for i, rows in enumerate(positions) if len(rows)]
        return {name: rows_of([named[i][name] for i in some], [positions[i] for i in some], len(chosen))
                for name in (named[some[0]] if some else ())}

    return ActResult(
        np.zeros(0, np.int64), rows_of([a.actions for a in answers], parts, n),
        rows_of([a.log_probabilities for a in answers], parts, n), rows_of([a.values for a in answers], parts, n),
        rows_of([a.versions for a in answers], parts, n), named_rows([a.states for a in answers], with_state),
        named_rows([a.auxiliary for a in answers], with_state), max(a.queue_us for a in answers),
        max(a.forward_us for a in answers), answers[0].reward_std, max(a.seconds for a in answers),
        named_rows([a.policy_debug for a in answers], with_debug))


def inference_pools(connect: Callable[[Sequence[str], str], InferenceClient], addresses: Sequence[str],
                    past_addresses: Sequence[str]) -> InferencePools:
    """Create the client of a configuration. With empty ``past_addresses`` those of ``addresses`` serve past versions
    too.

    ``connect`` creates a client of addresses with the name in their certificates ('': their own).
    """
    past = PastServers(past_addresses or addresses, lambda target: connect([target.address], target.name))
    return InferencePools(connect(addresses, ""), past, shared=not past_addresses)
