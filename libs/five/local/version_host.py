"""Host of one version for people's games: Redis, controller, inference and play, without training."""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from five.local.cluster import RUNNING_SECONDS, LocalCluster
from five.local.readiness import why_not_ready
from five.local.rest_client import ControllerClient
from five.local.run_folder import RunFolder
from five.run.config import RunConfig
from rapid.blobs import BlobStore
from rapid.store import acl, functions
from rapid.store.connection import Role, connect
from rapid.store.parameters import ParameterStore
from rapid.store.state import Status

KINDS = frozenset({"controller", "inference", "play"})
WHO = "five play"  # author of the run's events


def hosting_config(config: RunConfig) -> RunConfig:
    """Return the configuration of a run that only serves: its model on the CPU in float32, games of people, no
    ratings. Addresses and stores are this machine's."""
    services, fresh = config.services, RunConfig()
    return config.model_copy(update={
        "model": config.model.model_copy(update={"precision": "float32"}),
        "store": fresh.store.model_copy(update={"archive_every": 1}), "blobs": fresh.blobs, "rpc": fresh.rpc,
        "services": services.model_copy(update={
            "inference": services.inference.model_copy(update={"device": "cpu", "addresses": [], "past_addresses": []}),
            "evaluator": services.evaluator.model_copy(update={"enabled": False}),
            "optimizer": fresh.services.optimizer, "play": fresh.services.play,
            "controller": fresh.services.controller})})


@contextmanager
def host_version(config: RunConfig, version: int, tensors: Mapping[str, Any], meta: Mapping[str, Any],
                 say: Callable[[str], None] = lambda text: None,
                 interruptible: Callable[[], AbstractContextManager[None]] = nullcontext,
                 hurried: Callable[[], bool] = lambda: False) -> Iterator[LocalCluster]:
    """Serve a version in a temporary run while the block runs; its folder is removed at the end.

    ``tensors`` and ``meta`` are arguments of ParameterStore.publish. The other arguments are those of
    LocalCluster.start. Raises RuntimeError or TimeoutError with the reason if a service does not start.
    """
    with tempfile.TemporaryDirectory(prefix="five-") as place:
        def publish(cluster: LocalCluster) -> None:
            functions.load(cluster.state.redis)  # the optimizer's user may not load them
            clients = {role: _client(cluster, role) for role in acl.ROLES}
            store = ParameterStore(clients["params"], clients["state"], cluster.config.name, cluster.config.store,
                                   BlobStore(cluster.config.blobs.url))
            store.publish(version, tensors, meta)

        folder = RunFolder(Path(place) / config.name)
        with LocalCluster.start(folder, hosting_config(config), say, None, interruptible, hurried, KINDS, publish
                                ) as cluster:
            with interruptible():
                _wait_ready(cluster)
                cluster.state.transition(Status.RUNNING, WHO, f"version {version} is served")
                _wait_playable(cluster)
            yield cluster
            cluster.stop("the command ends")


def _client(cluster: LocalCluster, role: Role) -> Any:
    """Return a client of a Redis as the optimizer, which publishes versions."""
    store = cluster.config.store
    return connect(store.state_url if role == "state" else store.params_url, store, role, cluster.login(acl.OPTIMIZER))


def _wait_playable(cluster: LocalCluster) -> None:
    """Wait until the play service knows that the run goes on."""
    end = time.monotonic() + RUNNING_SECONDS
    controller = ControllerClient(cluster.folder.cluster().rest, cluster.folder.operator_token())
    while why := controller.get("play")["why"]:
        cluster.check()
        if time.monotonic() > end:
            raise TimeoutError(f"no game can be opened within {RUNNING_SECONDS:g} s: {why}")
        time.sleep(0.1)


def _wait_ready(cluster: LocalCluster) -> None:
    end = time.monotonic() + RUNNING_SECONDS
    while True:
        cluster.check()
        if faults := cluster.faults():
            name, reason = next(iter(faults.items()))
            raise RuntimeError(f"{name} {reason}; {cluster.supervisor.why_failed(name)}")
        reasons = why_not_ready(cluster.supervisor, cluster.leases)
        if not reasons:
            return
        if time.monotonic() > end:
            raise TimeoutError(f"the agent is not served within {RUNNING_SECONDS:g} s: {'; '.join(reasons)}")
        time.sleep(0.1)
