"""Clients of the inference benchmark: groups of rollouts that play recorded observations."""

import asyncio
import itertools
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection

import numpy as np

from five.agent.learning.samples import Arrays
from five.benchmarks.child_process import RPC, ChildProcess
from five.clients.inference import NEWEST, RESET, WANT_STATE, InferenceClient
from five.local.run_origin import usable_cores

SPARSE = ("shared", "private")
MOST_PROCESSES = 8
SPARE_CORES = 2  # left to the server


@dataclass(frozen=True)
class InferenceTarget:
    """The server: its ``address``, the hash of its ``layout`` and the steps of an ``unroll``."""

    address: str
    layout: str
    unroll: int


class LoadClient:
    """Client that plays ``rows`` sessions on recorded observations, one step a call, as a rollout's group does.

    ``first``: its lowest session number. ``phase``: its step at the start; the first step of every unroll requests
    states.
    """

    def __init__(self, target: InferenceTarget, seen: Arrays, rows: int, first: int, phase: int = 0) -> None:
        self._client = InferenceClient([target.address], RPC, target.layout, sparse=SPARSE, epoch=1)
        self._sessions = np.arange(first, first + rows, dtype=np.int64)
        self._policies = np.full(rows, NEWEST, np.int64)
        self._seen = rows_of(seen, rows)
        self._unroll = target.unroll
        self._steps = itertools.count(phase)
        self._begun = False
        self.rows = rows

    async def step(self) -> None:
        """Send one request and wait for its answer."""
        step = next(self._steps)
        flags = (0 if self._begun else RESET) | (WANT_STATE if step % self._unroll == 0 else 0)
        self._begun = True
        await self._client.act(self._sessions, self._policies, np.full(len(self._sessions), flags, np.uint8),
                               self._seen[step % len(self._seen)])

    async def play(self, until: float) -> int:
        """Step until the performance counter reaches ``until``. Return the number of steps."""
        steps = 0
        while time.perf_counter() < until:
            await self.step()
            steps += 1
        return steps

    async def timed(self, requests: int) -> list[float]:
        """Return the milliseconds of ``requests`` consecutive requests."""
        out = []
        for _ in range(requests):
            began = time.perf_counter()
            await self.step()
            out.append(1000 * (time.perf_counter() - began))
        return out

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()


def rows_of(seen: Arrays, rows: int) -> list[Arrays]:
    """Return batches of ``rows`` team-steps of [T, B, ...]: as many as T * B holds, at least one."""
    flat = {name: array.reshape(-1, *array.shape[2:]) for name, array in seen.items()}
    count = max(len(flat["shared"]) // rows, 1)
    return [{name: np.ascontiguousarray(np.take(array, range(i * rows, (i + 1) * rows), 0, mode="wrap"))
             for name, array in flat.items()} for i in range(count)]


def requests_of(batch: int, most: int) -> list[int]:
    """Return the rows of the requests that fill a batch, each of ``most`` at most."""
    count = -(-batch // most)
    return [batch // count + (i < batch % count) for i in range(count)]


class LoadClientPool:
    """Clients in several processes, since one process could not load a GPU: two batches of them, so that one batch
    gathers while the other is evaluated. Use it as a context manager."""

    def __init__(self, target: InferenceTarget, seen: Arrays, requests: Sequence[int]) -> None:
        both = [*requests, *requests]
        firsts = [1, *(1 + np.cumsum(both)).tolist()]
        players = [(rows, firsts[i], i, i < len(requests)) for i, rows in enumerate(both)]
        self.processes = max(min(len(requests), usable_cores() - SPARE_CORES, MOST_PROCESSES), 1)
        self.in_flight = len(players)
        # Enough observations for two different requests of each client's size.
        seen = {name: array.reshape(1, -1, *array.shape[2:])[:, :2 * max(requests)] for name, array in seen.items()}
        self._arguments = [(target, seen, players[i::self.processes]) for i in range(self.processes)]
        self._children: list[ChildProcess] = []
        self._stack = ExitStack()

    def __enter__(self) -> "LoadClientPool":
        with ExitStack() as stack:
            self._children = [ChildProcess(_play, *arguments) for arguments in self._arguments]
            for child in self._children:  # start all of them at once
                stack.enter_context(child)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def rate(self, seconds: float) -> float:
        """Return the team-steps a second of all clients together."""
        return float(sum(sum(reply) for reply in self._request("rate", seconds)))

    def latency(self, requests: int) -> list[float]:
        """Return the milliseconds of at least ``requests`` requests with one batch in flight."""
        return [ms for reply in self._request("latency", -(-2 * requests // self.in_flight)) for ms in reply]

    def _request(self, kind: str, amount: float) -> list[list[float]]:
        for child in self._children:
            child.pipe.send((kind, amount))
        return [child.receive() for child in self._children]


def _play(pipe: Connection, target: InferenceTarget, seen: Arrays, players: list[tuple[int, int, int, bool]]) -> None:
    """Run some clients in this process: (rows, first session, phase, whether they take part in latency)."""
    async def run() -> None:
        clients = [(LoadClient(target, seen, rows, first, phase), alone) for rows, first, phase, alone in players]
        await asyncio.gather(*(player.step() for player, _ in clients))
        pipe.send("playing")
        try:
            while True:
                kind, amount = await asyncio.to_thread(pipe.recv)
                if kind == "rate":
                    began = time.perf_counter()
                    steps = await asyncio.gather(*(p.play(began + amount) for p, _ in clients))
                    seconds = time.perf_counter() - began
                    pipe.send([n * p.rows / seconds for n, (p, _) in zip(steps, clients, strict=True)])
                else:
                    times = await asyncio.gather(*(p.timed(amount) for p, alone in clients if alone))
                    pipe.send([ms for one in times for ms in one])
        finally:
            for player, _ in clients:
                await player.close()

    asyncio.run(run())
