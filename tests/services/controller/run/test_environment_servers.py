"""Environment servers that rollouts report, each counted once."""

from typing import Any

import pytest

from five.services.controller.run.environment_servers import environment_servers
from rapid.store.leases import Instance


def instance(kind: str, machine: str, environments: Any) -> Instance:
    return Instance(kind, "0", "", f"{machine}:9100", 0.0, 0.0, {"environments": environments})


def test_shared_server_counts_once() -> None:
    live = [instance("rollout", "10.0.0.1", ["10.0.9.1:50051", "10.0.9.2:50051"]),
            instance("rollout", "10.0.0.2", ["10.0.9.2:50051"])]
    assert environment_servers(live) == {"10.0.9.1:50051", "10.0.9.2:50051"}


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "[::1]"])
def test_servers_at_a_loopback_address_differ_by_machine(host: str) -> None:
    address = f"{host}:50051"
    live = [instance("rollout", machine, [address]) for machine in ("10.0.0.1", "[fd00::2]", "10.0.0.1")]
    assert environment_servers(live) == {f"10.0.0.1/{address}", f"[fd00::2]/{address}"}


@pytest.mark.parametrize("kind", ["evaluator", "optimizer", "play", "zoo"])
def test_only_rollouts_count(kind: str) -> None:
    assert environment_servers([instance(kind, "10.0.0.1", ["10.0.9.1:50051"])]) == set()


@pytest.mark.parametrize("reported", [None, "10.0.9.1:50051", 3, {"10.0.9.1:50051": 1}, []])
def test_rollout_without_a_list_of_servers_has_none(reported: Any) -> None:
    """Another release, or a rollout that plays nowhere yet."""
    assert environment_servers([instance("rollout", "10.0.0.1", reported)]) == set()
    assert environment_servers([Instance("rollout", "0", "", "", 0.0, 0.0, {})]) == set()
