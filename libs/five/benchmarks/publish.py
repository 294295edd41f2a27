"""Publishing a version from the optimizer's memory until an inference server plays it, compared with plain Redis."""

import statistics
import tempfile
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import torch

from dota.spaces import Layout
from five.benchmarks import recorded_data
from five.benchmarks.child_process import ChildProcess, prepare
from five.benchmarks.results import BenchmarkRow, machine, row
from five.run.config import RunConfig
from five.run.load import load
from five.services.inference.loading import PolicyLoader, StoreSource
from five.services.inference.models import Models, ResidentVersion
from rapid.config import StoreConfig
from rapid.embedded_redis import EmbeddedRedis
from rapid.store.connection import connect
from rapid.store.parameters import ParameterStore

# Versions before the measurement. They allocate the memory that later versions reuse: the server's two policies and the
# store's chunks.
WARM_UP = 3


@dataclass(frozen=True)
class PublishWorkload:
    """Workload of the benchmark ``publish``. The default is the paper's model."""

    preset: str = "rerun"
    overrides: tuple[str, ...] = ("services.inference.device=cpu", "services.optimizer.device=cpu")
    repeats: int = 3


def _follow(pipe: Connection, config: RunConfig) -> None:
    """Follow the store as an inference server does, and report when each version plays."""
    store = ParameterStore(connect(config.store.params_url, config.store, "params"),
                           connect(config.store.state_url, config.store), config.name, config.store)

    def swapped(served: ResidentVersion, seconds: float) -> None:
        pipe.send((served.version, time.monotonic()))

    device = torch.device(config.services.inference.device)
    loader = PolicyLoader(Layout(config.game), config.model, device)
    models = Models(StoreSource(store, device.type == "cuda"), loader, past_bytes=0, poll_seconds=3600.0,
                    on_swap=swapped)
    pipe.send("ready")
    models.start()
    newest = None
    try:
        while not pipe.poll():
            found = store.wait_newer(newest, 1.0)
            if found is not None:
                newest = found
                models.wake()
    finally:
        models.close()


def publish_seconds(config: RunConfig, repeats: int) -> tuple[list[float], int, int]:
    """Return the seconds of each publish until the version plays, the bytes of a version in the store, and its
    parameters."""
    store = ParameterStore(connect(config.store.params_url, config.store, "params"),
                           connect(config.store.state_url, config.store), config.name, config.store)
    policy = recorded_data.policy_of(config).to(config.services.optimizer.device)
    meta = {"layout": Layout(config.game).hash}
    seconds = []
    with ChildProcess(_follow, config) as follower:
        for version in range(WARM_UP + repeats):
            with torch.no_grad():
                policy.value.bias.fill_(float(version))
            began = time.monotonic()
            store.publish(version, {n: t.detach().cpu().numpy() for n, t in policy.state_dict().items()}, meta)
            while True:
                served, at = follower.receive()
                if served == version:
                    break
            seconds.append(at - began)
    record = store.record(WARM_UP)
    assert record is not None
    return seconds[WARM_UP:], record.bytes, sum(p.numel() for p in policy.parameters())


def redis_seconds(config: RunConfig, nbytes: int, repeats: int) -> list[float]:
    """Return the seconds to SET and GET ``nbytes`` in values of the store's chunk size by the plain client."""
    client = connect(config.store.params_url, config.store, "params")
    data, step = np.random.default_rng(0).bytes(nbytes), config.store.chunk_bytes
    pieces = [data[i:i + step] for i in range(0, nbytes, step)]
    seconds = []
    for _ in range(repeats + 1):
        began = time.monotonic()
        for i, piece in enumerate(pieces):
            client.set(f"plain:{i}", piece)
        for i in range(len(pieces)):
            client.get(f"plain:{i}")
        seconds.append(time.monotonic() - began)
    client.delete(*(f"plain:{i}" for i in range(len(pieces))))
    client.close()
    return seconds[1:]


def measure(size: PublishWorkload | None = None) -> list[BenchmarkRow]:
    """Return the rows ``publish.seconds`` and ``publish.seconds.bfloat16``: from the call of publish until the version
    plays.

    The reference is SET and GET of the bytes by the plain Redis client.
    """
    size = size or PublishWorkload()
    prepare()
    rows = []
    for name, dtype in (("publish.seconds", "float32"), ("publish.seconds.bfloat16", "bfloat16")):
        with (tempfile.TemporaryDirectory() as folder,
              EmbeddedRedis(Path(folder) / "state", append_only=True).start() as state,
              EmbeddedRedis(Path(folder) / "params", append_only=False).start() as params):
            config = load(size.preset, [*size.overrides, f"store.state_url={state.url}",
                                        f"store.params_url={params.url}", f"store.publish_dtype={dtype}",
                                        "store.keep_versions=1", "store.grace_seconds=1"])
            seconds, nbytes, parameters = publish_seconds(config, size.repeats)
            plain = redis_seconds(config, nbytes, size.repeats)
        conditions = machine(preset=size.preset, torch=torch.__version__, parameters=parameters,
                             megabytes=round(nbytes / 1e6, 1),
                             chunk_mebibytes=StoreConfig().chunk_mebibytes, dtype=dtype,
                             device=recorded_data.name_of(config.services.inference.device))
        rows.append(row(name, statistics.median(seconds), "s", statistics.median(plain), conditions))
    return rows
