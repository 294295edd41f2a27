"""Agent of one node's optimizers: starts them as ranks of the group, and again whenever the group changes.

    python -m five.services.optimizer.agent --nodes 1:4 --ranks 2 -- --config FILE [arguments of the optimizer service]

It is torch's elastic agent with a rendezvous in the state Redis (`rapid.store.rendezvous`). When a node is lost, the
others continue as long as the minimum remains, whichever node it was. When one comes, all restart from a checkpoint.
"""

import argparse
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from torch.distributed.elastic.agent.server.api import WorkerGroup, WorkerSpec
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException

from five.run.config import RunConfig
from five.run.load import load
from five.services.optimizer.rendezvous import RedisRendezvous
from rapid.listening import listen
from rapid.startup import OWN_NAME, advertised_host, configure_process, exit_with_error, parse_arguments
from rapid.store.connection import connect, password_of
from rapid.store.rendezvous import GroupRendezvous

log = logging.getLogger("five.services.optimizer.agent")

MODULE = "five.services.optimizer"
SHUTDOWN_SECONDS = 3600  # until ranks are killed; they write their checkpoint first and end themselves in time
RESTARTS = 1000


class OptimizerAgent(LocalElasticAgent):
    """Elastic agent whose ranks end together, by a barrier of their own, and have as long as they need for it."""

    def _exit_barrier(self) -> None:
        """Wait for no other agent."""

    def _stop_workers(self, worker_group: WorkerGroup) -> None:
        self._shutdown(timeout=SHUTDOWN_SECONDS)


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}.agent", description="Start the optimizers of one node.")
    parser.add_argument("--nodes", required=True, metavar="[MINIMUM:]MAXIMUM", help="nodes of the group; with a "
                        "minimum the group continues without lost nodes")
    parser.add_argument("--ranks", type=int, required=True, help="optimizers of each node")
    parser.add_argument("--group", default="optimizers", help="name of the group: only nodes with the same one meet")
    parser.add_argument("--node", default=OWN_NAME, help="name of this node, the same after a restart; ranks are in "
                        "the order of names (default: the machine's name)")
    parser.add_argument("--address", default="", help="host at which the other nodes reach this one (default: found)")
    parser.add_argument("--max-restarts", type=int, default=RESTARTS, help="restarts after a lost rank until the agent "
                        f"ends with an error (default: {RESTARTS})")
    parser.add_argument("--waiting", type=Path, metavar="FILE",
                        help="file that exists while this node waits for others")
    parser.add_argument("--replaced-last", default="", metavar="NODE", help="node that a rolling update replaces last; "
                        "on it FILE does not exist before its ranks have started once")
    parser.add_argument("service", nargs=argparse.REMAINDER, metavar="-- ARGUMENTS", help="of the optimizer service")
    given = parser.parse_args(argv)
    lowest, _, highest = given.nodes.rpartition(":")
    if not highest.isdecimal() or (lowest and not lowest.isdecimal()):
        parser.error(f"--nodes {given.nodes}: expected MAXIMUM or MINIMUM:MAXIMUM")
    given.minimum, given.maximum = int(lowest or highest), int(highest)
    given.service = given.service[1:] if given.service[:1] == ["--"] else given.service
    given.node = socket.gethostname() if given.node == OWN_NAME else given.node
    return given


def rendezvous_of(given: argparse.Namespace, config: RunConfig) -> RedisRendezvous:
    """Return the node's rendezvous. Raises ValueError for an invalid number of nodes or Redis URL."""
    life, host = config.lifecycle, config.rpc.listen_host
    state = connect(config.store.state_url, config.store, "state", most=1)
    # A pod that Kubernetes replaces is back within seconds, so the others wait as long as for a lost one.
    group = GroupRendezvous(state, config.name, given.group, given.node, given.minimum, given.maximum,
                            life.lease_seconds, life.lease_seconds)
    if given.waiting is not None:
        given.waiting.unlink(missing_ok=True)  # of a container that was killed while it waited

    def free_port() -> int:
        with listen(host, 0) as found:
            return int(found.getsockname()[1])

    return RedisRendezvous(group, given.group, given.address or advertised_host(host), free_port,
                           life.heartbeat_seconds, given.waiting, given.node == given.replaced_last)


def _on_signal(number: int, frame: FrameType | None) -> None:
    name = signal.Signals(number)
    raise SignalException(f"got {name.name}", sigval=name)


def main() -> int:
    """Run the agent and return its exit status."""
    given = parse()
    arguments = parse_arguments("optimizer", given.service)
    try:
        config = configure_process("optimizer", arguments, load, (password_of("state"), password_of("params")))
        rendezvous = rendezvous_of(given, config)
    except (ValueError, OSError) as error:
        exit_with_error("optimizer agent", error)
    for number in (signal.SIGTERM, signal.SIGINT):  # until the first start, when torch sets its own handlers
        signal.signal(number, _on_signal)
    os.environ["TORCH_ELASTIC_WORKER_IDENTICAL"] = "1"
    spec = WorkerSpec(role="optimizer", local_world_size=given.ranks, entrypoint=sys.executable,
                      args=("-m", MODULE, *given.service), rdzv_handler=rendezvous,
                      max_restarts=given.max_restarts)
    agent = OptimizerAgent(spec, DefaultLogsSpecs(), shutdown_timeout=SHUTDOWN_SECONDS)
    try:
        failed = agent.run().is_failed()
    except SignalException as ended:
        log.info("ended by %s", ended.sigval.name)
        failed = False
    finally:
        rendezvous.shutdown()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
