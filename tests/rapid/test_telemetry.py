"""Metrics follow the scheme; logs have their fields and no secret."""

import http.client
import io
import json
import logging
import socket
import threading
import urllib.request

import numpy as np
import pytest

from rapid.config import TelemetryConfig
from rapid.telemetry import metrics, pages
from rapid.telemetry.logs import configure_logs, fields
from rapid.telemetry.pages import start_pages
from tests.waiting import eventually


def test_metrics_follow_the_scheme_and_are_served() -> None:
    steps = metrics.counter("tested", "hero_steps", "Steps of the tests.", ("side",))
    reuse = metrics.gauge("tested", "sample_reuse", "ratio", "Reuse of the tests.")
    wait = metrics.histogram("tested", "wait", "seconds", "Waits of the tests.")
    steps.labels("radiant").inc(3)
    steps.labels("dire").inc(4)
    reuse.set(1.25)
    wait.observe(0.002)
    names = {d.name: d for d in metrics.definitions()}
    assert names["five_tested_hero_steps_total"].labels == ("side",)
    assert names["five_tested_wait_seconds"].kind == "histogram"
    text = metrics.metrics_reference()
    assert "## tested" in text
    assert "| `five_tested_hero_steps_total` | counter | `side` | Steps of the tests. |" in text
    values = metrics.snapshot()
    assert values["five_tested_hero_steps_total"] == 7 and values["five_tested_sample_reuse_ratio"] == 1.25
    assert values["five_tested_wait_seconds_count"] == 1
    server = start_pages(0)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=30) as page:
            text = page.read().decode()
        assert 'five_tested_hero_steps_total{side="radiant"} 3.0' in text
        assert "# HELP five_tested_sample_reuse_ratio Reuse of the tests." in text
        with pytest.raises(OSError, match="telemetry.metrics_port to a free port"):
            start_pages(server.port)
    finally:
        server.close()


@pytest.mark.parametrize(("arguments", "says"), [
    (("tested", "Bad-Name", "total", "X."), "lowercase words"),
    (("tested", "x", "parsecs", "X."), "metric unit 'parsecs'"),
    (("tested", "x", "seconds", "no full stop"), "must be a sentence"),
    (("tested", "x", "total", "X."), "the unit 'total' is for counters"),
])
def test_metrics_outside_the_scheme_are_refused(arguments: tuple[str, str, str, str], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        metrics.gauge(*arguments)


def test_observe_all_equals_single_observations() -> None:
    """On bounds, between them, below the first and beyond the last."""
    one, many = (metrics.histogram("tested", f"ages_{how}", "versions", "Ages of the tests.", buckets=(0, 1, 2, 4))
                 for how in ("singly", "together"))
    values = np.array([[0, 0, 1, 3], [4, 5, 900, -1]], np.int32)
    for value in values.reshape(-1).tolist():
        one.observe(value)
    many.observe_all(values)
    many.observe_all(np.zeros(0, np.int32))

    def shown(histogram: metrics.Histogram) -> list[tuple[str, str, float]]:
        (family,) = histogram.collect()
        return [(s.name.rpartition("_")[2], s.labels.get("le", ""), s.value) for s in family.samples]

    assert shown(many) == shown(one)
    assert ("bucket", "4.0", 6.0) in shown(many) and ("count", "", 8.0) in shown(many)


def test_a_metric_is_defined_once() -> None:
    metrics.gauge("tested", "once", "games", "First.")
    with pytest.raises(ValueError, match="five_tested_once_games is defined twice"):
        metrics.gauge("tested", "once", "games", "Second.")


def lines(config: TelemetryConfig, write: object) -> list[str]:
    stream = io.StringIO()
    configure_logs(config, "laptop", "rollout", "3", ["s3cret-token"], stream)
    write()  # type: ignore[operator]
    return stream.getvalue().splitlines()


def test_json_logs() -> None:
    def write() -> None:
        log = logging.getLogger("rapid.test")
        with fields(version=12):
            log.info("segment %s", "sent", extra={"game": "g1"})
        log.debug("not shown")
        try:
            raise KeyError("x")
        except KeyError:
            log.exception("failed with s3cret-token")

    first, second = (json.loads(line) for line in lines(TelemetryConfig(log_json=True), write))
    assert first["message"] == "segment sent" and first["level"] == "info" and first["logger"] == "rapid.test"
    assert (first["run"], first["service"], first["id"], first["version"], first["game"]) == (
        "laptop", "rollout", "3", 12, "g1")
    assert first["time"].endswith("Z") and "version" not in second
    assert second["message"] == "failed with ***" and "KeyError" in second["exception"]


def test_text_logs() -> None:
    def write() -> None:
        logging.getLogger("x").warning("late", extra={"version": 4, "key": "s3cret-token"})

    (line,) = lines(TelemetryConfig(), write)
    assert line.endswith("W rollout-3: late  version=4 key=***")
    assert lines(TelemetryConfig(log_level="error"), write) == []


FORGED = "name\n12:00:00.000 I controller-0: forged\r\x1b[2J\x9b31m\u2028\u202e\x00"


@pytest.mark.parametrize("config", [TelemetryConfig(), TelemetryConfig(log_json=True)])
def test_received_names_cannot_forge_log_lines(config: TelemetryConfig) -> None:
    """Also in a field and in the text of an exception; a terminal receives no escape sequence."""
    def write() -> None:
        log = logging.getLogger("x")
        with fields(team=FORGED):
            log.warning("player %s joined", FORGED, extra={"game": FORGED})
        try:
            raise ValueError(FORGED) from KeyError("cause")
        except ValueError:
            log.exception("refused")

    found = lines(config, write)
    assert not [line for line in found if line.startswith("12:00:00")]
    assert not [c for line in found for c in line if not c.isprintable()]
    starts = [line for line in found if line[:1] not in (" ", "")]
    assert len(starts) == 2 and ("\\x1b[2J" if not config.log_json else "\\u001b[2J") in found[0]
    text = "\n".join(found)
    assert "Traceback" in text and "KeyError" in text and "ValueError" in text


@pytest.mark.parametrize("config", [TelemetryConfig(), TelemetryConfig(log_json=True)])
def test_secrets_are_hidden_however_they_are_escaped(config: TelemetryConfig) -> None:
    from rapid.telemetry.logs import hide_secrets

    hide_secrets('pass"wörd\\')
    (line,) = lines(config, lambda: logging.getLogger("x").warning('is pass"wörd\\ now'))
    assert "***" in line and "pass" not in line


def test_nothing_remains_of_a_secret_that_contains_another() -> None:
    from rapid.telemetry.logs import hide_secrets

    secrets = [f"key{i}" for i in range(8)]  # in the order of a set, some of them come first
    hide_secrets(*secrets, *(f"{secret}-of-ada" for secret in secrets))
    for line in lines(TelemetryConfig(), lambda: [logging.getLogger("x").warning(f"{s}-of-ada") for s in secrets]):
        assert "***" in line and "ada" not in line


def get(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path)
    answer = connection.getresponse()
    return answer.status, answer.read().decode().strip()


def test_health_and_readiness_pages() -> None:
    reasons = ["no version has been loaded yet", ""]
    server = start_pages(0, not_ready=lambda: reasons[0])
    try:
        assert get(server.port, "/healthz") == (200, "alive")
        assert get(server.port, "/readyz") == (503, "no version has been loaded yet")
        reasons.pop(0)
        assert get(server.port, "/readyz") == (200, "ready")
        assert get(server.port, "/elsewhere") == (404, "the pages are /metrics, /healthz and /readyz")
        assert get(server.port, "/healthz", "POST") == (405, "only GET and HEAD are allowed")
        status, text = get(server.port, "/metrics")
        assert status == 200 and "# TYPE" in text
    finally:
        server.close()


def test_slow_clients_do_not_block_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages._Handler, "timeout", 0.3)
    server = start_pages(0)
    silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
    for client in silent[::2]:
        client.sendall(b"GET /healthz HTTP/1.1\r\n")  # an unfinished request
    try:
        assert get(server.port, "/healthz") == (200, "alive")
        for client in silent:
            client.settimeout(5)
            while client.recv(1000):
                pass  # closed, with or without an error
    finally:
        for client in silent:
            client.close()
        server.close()


def test_clients_over_the_limit_are_refused() -> None:
    server = start_pages(0)
    silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(pages.MAX_REQUESTS + 5)]
    try:
        last = silent[-1]
        last.settimeout(5)
        assert last.recv(1) == b""
        assert threading.active_count() < pages.MAX_REQUESTS + 20
    finally:
        for client in silent:
            client.close()
    eventually(lambda: get(server.port, "/healthz")[0] == 200)
    server.close()


def test_requests_without_a_thread_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise RuntimeError("can't start new thread")

    server = start_pages(0)
    with monkeypatch.context() as patch:
        patch.setattr(pages.ThreadingMixIn, "process_request", fail)
        for _ in range(pages.MAX_REQUESTS + 1):
            with socket.create_connection(("127.0.0.1", server.port), 30) as client:
                assert client.recv(1) == b""
    assert get(server.port, "/healthz") == (200, "alive")
    server.close()


def test_pages_on_ipv6() -> None:
    try:
        server = start_pages(0, "::1")
    except OSError:
        pytest.skip("this machine has no IPv6")
    connection = http.client.HTTPConnection("::1", server.port, timeout=30)
    connection.request("GET", "/healthz")
    assert connection.getresponse().status == 200
    server.close()
