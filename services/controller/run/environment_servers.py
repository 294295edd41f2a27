"""Environment servers as reported by rollouts; the servers themselves send no heartbeats."""

from collections.abc import Iterable

from rapid.store.leases import Instance

KIND = "dota_env"
_LOOPBACK = ("127.", "localhost:", "[::1]")


def environment_servers(live: Iterable[Instance]) -> set[str]:
    """Return the addresses of the environment servers that live rollouts play on.

    A server in a rollout's own pod has a loopback address; the rollout's host distinguishes it from others.
    """
    found: set[str] = set()
    for instance in live:
        machine = instance.metrics_address.rpartition(":")[0]
        reported = instance.stats.get("environments") if instance.kind == "rollout" else None
        for address in reported if isinstance(reported, list) else ():
            is_local = str(address).startswith(_LOOPBACK)
            found.add(f"{machine}/{address}" if is_local else str(address))
    return found
