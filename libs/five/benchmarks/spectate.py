"""Cost of spectators: encoding a timestep of five against five, compared with playing it.

``python -m five.benchmarks.spectate --url URL`` measures what viewers cost a run that trains.
"""

import argparse
import asyncio
import os
import statistics
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import httpx
import psutil
import redis

from dota.config import GameConfig
from dota.spectator.camera import Camera, ChunkEntry
from dota.spectator.chunks import CHUNK_STEPS
from dota.vec_game import Controller as Player
from dota.vec_game import VecGame
from five.benchmarks.game import snapshots
from five.benchmarks.results import BenchmarkRow, Conditions, as_json, as_text, machine, row
from five.local.rest_client import TOKEN_VARIABLE, ControllerClient
from five.services.controller.games.live_hub import LiveHub
from rapid.store.leases import Leases
from rapid.store.live_channel import LiveChannel, LiveMessage

VIEWERS = (1, 50)
STEP_SECONDS = 4 / 30


@dataclass(frozen=True)
class SpectateWorkload:
    """Workload of the benchmark ``spectate``."""

    game: GameConfig = field(default_factory=GameConfig)
    from_seconds: float = 600.0  # game time at the start of the measurement
    steps: int = 30 * CHUNK_STEPS
    chunks: int = 200  # sent to each viewer
    repeats: int = 5


def measure(size: SpectateWorkload = SpectateWorkload()) -> list[BenchmarkRow]:
    """Return the rows ``watch.*``: processor time of encoding a timestep, bytes of a second of game, and the live hub's
    cost of a chunk for a viewer."""
    saved = snapshots(size.game, 1, size.from_seconds)[0]
    game = VecGame(size.game, 1, seed=1, observations=False)
    game.controllers[:] = Player.HARD
    played, recorded, rates, made = [], [], [], list[bytes]()
    for _ in range(size.repeats):
        chunks: list[bytes] = []

        def keep(chunk: bytes, facts: ChunkEntry, chunks: list[bytes] = chunks) -> None:
            chunks.append(chunk)

        game.restore(0, saved)
        camera = Camera(size.game, {}, keep)
        step = record = 0.0
        count = 0
        while count < size.steps and not game.winner[0]:
            began = time.process_time()
            game.step()
            between = time.process_time()
            camera.record(game, 0)
            record += time.process_time() - between
            step += between - began
            count += 1
        camera.end()
        played.append(1e6 * step / count)
        recorded.append(1e6 * record / count)
        rates.append(sum(map(len, chunks)) / (count * STEP_SECONDS))
        made = chunks
    conditions = machine(steps=size.steps, mode=size.game.mode)
    found = [row("watch.timestep", statistics.median(recorded), "us of processor", statistics.median(played),
                 conditions),
             row("watch.bytes", statistics.median(rates), "bytes/s of game", None, conditions)]
    for viewers in VIEWERS:
        spent = statistics.median(_fan_out(made, viewers, size.chunks) for _ in range(size.repeats))
        found.append(row(f"watch.relay.viewers{viewers}", spent, "us of processor a chunk", None,
                         machine(viewers=viewers, chunks=size.chunks)))
    return found


class IdleHub(LiveHub):
    """A live hub that reads no Redis: the benchmark gives it the chunks."""

    def _start(self) -> None:
        pass


def _fan_out(made: Sequence[bytes], viewers: int, chunks: int) -> float:
    """Return the live hub's processor microseconds for a chunk sent to ``viewers``, without their connections."""

    async def play() -> float:
        state = redis.Redis()  # never used
        hub = IdleHub(LiveChannel(state, "bench"), Leases(state, "bench"))
        views = [hub.watch("0" * 16) for _ in range(viewers)]

        async def watch(view: object) -> None:
            stream = hub.chunks(view, heartbeat=15.0)  # type: ignore[arg-type]
            for _ in range(chunks + 1):
                await anext(stream)

        hub.receive(LiveMessage("header", "bench", "0" * 16, b"header"))
        watchers = [asyncio.create_task(watch(view)) for view in views]
        await asyncio.sleep(0)
        began = time.process_time()
        for k in range(chunks):
            hub.receive(LiveMessage("chunk", "bench", "0" * 16, made[k % len(made)]))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        await asyncio.gather(*watchers)
        return 1e6 * (time.process_time() - began) / chunks

    return asyncio.run(play())


class Viewer(threading.Thread):
    """Client that watches a live game until it is stopped or the game ends. ``bytes`` counts what it received."""

    def __init__(self, url: str, token: str, games: Sequence[str]) -> None:
        super().__init__(daemon=True)
        self._url, self._headers, self._games = url, {"Authorization": f"Bearer {token}"}, games
        self.stop = threading.Event()
        self.bytes = 0

    def run(self) -> None:
        for game in self._games:  # the next one when a game ends
            try:
                address = f"{self._url}/v1/games/{game}/live"
                with httpx.stream("GET", address, headers=self._headers, timeout=30, trust_env=False) as response:
                    for piece in response.iter_raw():
                        self.bytes += len(piece)
                        if self.stop.is_set():
                            return
            except httpx.HTTPError:
                pass
            if self.stop.is_set():
                return


def while_training(url: str, token: str, seconds: float, pids: Sequence[int], rounds: int = 2) -> list[BenchmarkRow]:
    """Return what viewers of one game cost a run: its hero-steps a second of wall clock, and the processor time of the
    processes ``pids`` (rollouts, inference, controller) for a million of them.

    Intervals with and without viewers alternate. ``off`` and ``on`` in the conditions list them one by one and show
    how far they vary.
    """
    controller = ControllerClient(url, token)
    processes = [psutil.Process(pid) for pid in pids]

    def measure_interval(viewers: int) -> tuple[float, float, int]:
        """Return the hero-steps a second, the processor seconds a million hero-steps, and the bytes that viewers
        received."""
        watching = []
        if viewers:
            games = _games(controller)
            watching = [Viewer(url, token, games) for _ in range(viewers)]
            for viewer in watching:
                viewer.start()
            time.sleep(3)
        newest = controller.get("series/versions", limit=1)["newer"]
        before, began = sum(sum(p.cpu_times()[:2]) for p in processes), time.perf_counter()
        time.sleep(seconds)
        used, wall = sum(sum(p.cpu_times()[:2]) for p in processes) - before, time.perf_counter() - began
        records = controller.get("series/versions", after=newest, limit=1000)["items"]
        for viewer in watching:
            viewer.stop.set()
        speeds = [r["values"]["hero_steps_per_second"] for r in records if "hero_steps_per_second" in r["values"]]
        if not speeds:
            raise RuntimeError(f"no version was published within {seconds:g} s: there is nothing to compare")
        speed = statistics.mean(speeds)
        return speed, 1e6 * used / wall / speed, sum(v.bytes for v in watching)

    found = []
    for viewers in VIEWERS:
        off, on = [], []
        for _ in range(rounds):
            off.append(measure_interval(0))
            time.sleep(25)  # until the live hub drops the game
            on.append(measure_interval(viewers))
            time.sleep(25)
        conditions = machine(seconds=seconds, rounds=rounds, viewers=viewers, bytes_a_viewer_and_second=round(
            statistics.mean(s[2] for s in on) / viewers / (seconds + 3)))
        for k, what, unit in ((0, "training", "hero-steps/s"), (1, "processor", "processor s / million hero-steps")):
            if k and not pids:
                continue
            intervals: Conditions = {name: " ".join(f"{s[k]:.0f}" for s in each)
                                     for name, each in (("off", off), ("on", on))}
            found.append(row(f"watch.{what}.viewers{viewers}", statistics.mean(s[k] for s in on), unit,
                             statistics.mean(s[k] for s in off), conditions | intervals))
    return found


def _games(controller: ControllerClient) -> list[str]:
    for _ in range(30):
        games = [game["game"] for game in controller.get("games")["games"] if game.get("kind") == "training"]
        if games:
            return games
        time.sleep(1)
    raise RuntimeError("no game of the run is listed")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure a run that trains. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m five.benchmarks.spectate", description=__doc__)
    parser.add_argument("--url", required=True, help=f"controller of the run; its token is read from {TOKEN_VARIABLE}")
    parser.add_argument("--seconds", type=float, default=40.0, help="length of each interval (40)")
    parser.add_argument("--rounds", type=int, default=2, help="intervals of each kind (2)")
    parser.add_argument("--pid", type=int, action="append", default=[], help="a process of the run whose processor "
                        "time is measured; repeatable")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    arguments = parser.parse_args(argv)
    if not (token := os.environ.get(TOKEN_VARIABLE, "")):
        parser.error(f"{TOKEN_VARIABLE} is not set: it must hold a token of the run")
    rows = while_training(arguments.url, token, arguments.seconds, arguments.pid, arguments.rounds)
    print(as_json(rows) if arguments.json else as_text(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
