from pathlib import Path

import pytest

from five.local.cluster import free_ports, with_addresses
from five.run.load import load
from tests.ipv6 import needs_loopback


def test_free_ports_differ() -> None:
    assert len(set(free_ports(20))) == 20


def test_empty_addresses_are_filled(tmp_path: Path) -> None:
    asked = load("laptop-1v1", ["services.opponents.address=10.0.0.7:7400", "services.optimizer.optimizers=2",
                                "store.state_url=redis://elsewhere:6379/0", "services.controller.port=0"])
    found = with_addresses(asked, tmp_path)
    services = found.services
    assert services.opponents.address == "10.0.0.7:7400"
    assert len(services.optimizer.addresses) == 2 and len(services.inference.addresses) == 1
    assert services.evaluator.address and services.controller.port > 0
    assert found.store.state_url == "redis://elsewhere:6379/0"
    assert found.store.params_url.startswith("unix://") and found.blobs.url == str(tmp_path / "blobs")
    ports = [a.rpartition(":")[2] for a in (*services.optimizer.addresses, *services.inference.addresses,
                                            services.evaluator.address)]
    assert len(set(ports)) == len(ports)
    assert found.game == asked.game and found.learning == asked.learning


def test_remote_environment_gets_a_server(tmp_path: Path) -> None:
    found = with_addresses(load("laptop-1v1", ["services.rollout.environment=remote"]), tmp_path)
    assert len(found.services.dota_env.addresses) == 1


@needs_loopback
@pytest.mark.parametrize(("listens", "dialled"), [("::1", "[::1]:"), ("::", "[::1]:"), ("0.0.0.0", "127.0.0.1:")])
def test_services_are_dialled_where_they_listen(tmp_path: Path, listens: str, dialled: str) -> None:
    asked = ["services.rollout.environment=remote", f'rpc.listen_host="{listens}"']
    services = with_addresses(load("laptop-1v1", asked), tmp_path).services
    addresses = [*services.optimizer.addresses, *services.inference.addresses, *services.dota_env.addresses,
                 services.opponents.address, services.evaluator.address, services.play.address]
    assert all(address.startswith(dialled) for address in addresses)
