"""The servers that games run on. They have no store to give a heartbeat to: rollouts report where they play."""

from collections.abc import Iterable

from rapid.store.leases import Instance

KIND = "dota_env"
_LOOPBACK = ("127.", "localhost:", "[::1]")


def environments(live: Iterable[Instance]) -> set[str]:
    """Addresses of the environment servers on which living rollouts have games.

    A server in a rollout's own pod has the same loopback address as every other one: it is told apart by its machine.
    """
    found: set[str] = set()
    for instance in live:
        machine = instance.metrics_address.rpartition(":")[0]
        said = instance.stats.get("environments") if instance.kind == "rollout" else None
        for address in said if isinstance(said, list) else ():
            own = str(address).startswith(_LOOPBACK)
            found.add(f"{machine}/{address}" if own else str(address))
    return found
