from pathlib import Path
from types import SimpleNamespace

import pytest

from five.local.cluster import OPTIMIZER_GRACE, LocalCluster, free_ports, is_free, with_addresses
from five.local.passwords import Passwords
from five.local.run_folder import RunFolder
from five.local.run_lock import RunLock
from five.run.load import load
from rapid.listening import listen
from rapid.store.state import Status
from rapid.supervisor import Supervisor
from tests.ipv6 import needs_loopback


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


def test_path_with_yaml_characters_is_kept(tmp_path: Path) -> None:
    """In YAML " #" begins a comment and ": " a mapping."""
    folder = RunFolder(tmp_path / "games: try #2" / "trial")
    found = with_addresses(load("laptop-1v1"), folder.path)
    assert found.blobs.url == str(folder.path / "blobs")
    assert found.services.controller.tokens_file == str(folder.tokens)
    assert found.store.state_url == folder.embedded("state").url


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


def test_services_are_killed_after_their_own_grace_period(tmp_path: Path) -> None:
    """An optimizer takes as long as its checkpoint; the others end themselves after lifecycle.grace_seconds."""
    folder = RunFolder(tmp_path / "trial")
    folder.create()
    config = with_addresses(load("laptop-1v1", ["lifecycle.grace_seconds=60"]), folder.path)
    with RunLock(folder.path) as lock, Supervisor(tmp_path / "logs") as supervisor:
        cluster = LocalCluster(folder, config, supervisor, [], lock)
        cluster.passwords, cluster.embedded = Passwords(folder.path), ()
        graces = {spec.name: spec.grace_seconds for spec in cluster._specs()}
    assert graces.pop("optimizer-0") == OPTIMIZER_GRACE
    assert len(graces) > 4 and all(60 < seconds < 90 for seconds in graces.values())


def test_slow_start_is_explained_and_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("five.local.cluster.START_SECONDS", 0.1)
    folder, said = RunFolder(tmp_path / "trial"), list[str]()
    with RunLock(folder.path) as lock, Supervisor(tmp_path / "logs") as supervisor:
        cluster = LocalCluster(folder, load("laptop-1v1"), supervisor, [], lock)
        cluster.leases, cluster._reported = SimpleNamespace(live=list), {}  # type: ignore[assignment]
        cluster.state = SimpleNamespace(  # type: ignore[assignment]
            status=lambda: SimpleNamespace(status=Status.RUNNING) if said else None)
        cluster.wait_running(60, say=said.append)
        assert len(said) == 1 and said[0].startswith("the run has not started after 0.1 s, waiting for 60 s; services")
        cluster.state = SimpleNamespace(status=lambda: None)  # type: ignore[assignment]
        with pytest.raises(TimeoutError, match="within 0.3 s; services up: none; see "):
            cluster.wait_running(0.3)


def test_free_ports_are_not_those_that_the_system_gives_out() -> None:
    """A page of metrics asks the system for any port: it took the one at which its own restarting service listens."""
    ports = free_ports(20)
    assert len(set(ports)) == 20 and all(is_free("127.0.0.1", port) for port in ports)
    for _ in range(20):
        with listen("127.0.0.1", 0) as other:
            assert max(ports) < other.getsockname()[1]
    assert free_ports(0) == []


def test_address_of_another_machine_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"cannot listen on 203\.0\.113\.7 \(rpc\.listen_host\)"):
        with_addresses(load("laptop-1v1", ["rpc.listen_host=203.0.113.7"]), tmp_path)
