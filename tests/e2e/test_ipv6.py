"""A run on the IPv6 loopback alone."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from tests.e2e.running import Run, eventually
from tests.ipv6 import needs_loopback


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path)
    yield run
    run.destroy()


def listening(run: Run) -> set[tuple[str, int]]:
    """Return the TCP addresses on which the run's processes listen."""
    found = set()
    for process in run.everything():
        try:
            rows = process.net_connections("tcp")
        except psutil.Error:
            continue
        found |= {(row.laddr.ip, row.laddr.port) for row in rows if row.status == psutil.CONN_LISTEN}
    return found


@pytest.mark.slow
@needs_loopback
@pytest.mark.timeout(600)
def test_run_learns_on_ipv6_alone(run: Run) -> None:
    run.start_new("rpc.listen_host=::1", "telemetry.metrics_host=::1", "services.controller.host=::1",
                  "services.rollout.environment=remote")
    run.wait_version(2)
    rest = run.folder.cluster().rest
    assert rest.startswith("http://[::1]:") and run.status() in ("running", "starting")
    services = eventually(lambda: [s for s in run.state().services() if s.metrics_address], 60, "services report")
    for service in services:
        assert service.metrics_address.startswith("[::1]:")
        assert httpx.get(f"http://{service.metrics_address}/healthz", timeout=10).status_code == 200
    sockets = listening(run)
    assert len(sockets) > 10 and {host for host, _ in sockets} == {"::1"}
    shown = run.command("status")
    assert shown.returncode == 0 and "running" in shown.stdout
    assert run.end() == 0, run.logs()
