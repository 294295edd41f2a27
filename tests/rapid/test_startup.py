"""Arguments of a service, and the host that it tells others."""

import socket

import pytest

from rapid.startup import advertised_host, parse_arguments


def test_help_text(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_arguments("rollout", [])
    assert caught.value.code == 2 and "--config" in capsys.readouterr().err


def test_arguments() -> None:
    found = parse_arguments("rollout", ["--config", "c.yaml", "--set", "a.b=1", "--set", "c=2", "--id", "3",
                                        "--port", "50051", "--metrics-port", "0"])
    assert (found.config, found.overrides, found.id, found.port, found.metrics_port) == (
        "c.yaml", ("a.b=1", "c=2"), "3", 50051, 0)
    assert parse_arguments("rollout", ["--config", "c.yaml"]).port is None


def test_ranks_have_own_names_and_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ["--config", "c.yaml", "--id", "hostname", "--port", "50051", "--metrics-port", "9100"]
    found = parse_arguments("optimizer", asked)
    assert (found.id, found.port, found.metrics_port) == (socket.gethostname(), 50051, 9100)
    monkeypatch.setenv("LOCAL_RANK", "3")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "8")
    found = parse_arguments("optimizer", asked)
    assert (found.id, found.port, found.metrics_port) == (f"{socket.gethostname()}-3", 50054, 9103)
    assert parse_arguments("optimizer", ["--config", "c.yaml", "--metrics-port", "0"]).metrics_port == 0


def test_advertised_host(monkeypatch: pytest.MonkeyPatch) -> None:
    assert advertised_host("127.0.0.1") == "127.0.0.1"
    monkeypatch.setattr(socket, "getfqdn", lambda: "five-optimizer-0.five-optimizer.five.svc.cluster.local")
    assert advertised_host("0.0.0.0") == "five-optimizer-0.five-optimizer.five.svc.cluster.local"
    monkeypatch.setattr(socket, "getfqdn", lambda: "4d1a9c6f")
    monkeypatch.setattr(socket, "gethostname", lambda: "4d1a9c6f")
    rows = [(socket.AF_INET6, 0, 0, "", ("fd00::7", 0, 0, 0)), (socket.AF_INET, 0, 0, "", ("10.1.2.3", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *name, **options: rows)
    assert advertised_host("0.0.0.0") == "10.1.2.3" and advertised_host("::") == "fd00::7"
    del rows[1]
    assert advertised_host("0.0.0.0") == "fd00::7"
    rows[:] = [(socket.AF_INET, 0, 0, "", ("127.0.1.1", 0))]  # Debian's /etc/hosts
    assert advertised_host("0.0.0.0") == advertised_host("::") == "4d1a9c6f"
    rows.append((socket.AF_INET, 0, 0, "", ("10.1.2.3", 0)))
    assert advertised_host("0.0.0.0") == "10.1.2.3"
