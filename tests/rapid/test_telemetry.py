"""Metrics are defined once and by scheme; logs carry their fields and no secret."""

import io
import json
import logging
import urllib.request

import pytest

from rapid.config import TelemetryConfig
from rapid.telemetry import metrics
from rapid.telemetry.logs import configure_logs, fields
from rapid.telemetry.pages import start_pages


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
    text = metrics.reference()
    assert "## tested" in text
    assert "| `five_tested_hero_steps_total` | counter | `side` | Steps of the tests. |" in text
    values = metrics.snapshot()
    assert values["five_tested_hero_steps_total"] == 7 and values["five_tested_sample_reuse_ratio"] == 1.25
    assert values["five_tested_wait_seconds_count"] == 1
    server = start_pages(0)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=5) as page:
            text = page.read().decode()
        assert 'five_tested_hero_steps_total{side="radiant"} 3.0' in text
        assert "# HELP five_tested_sample_reuse_ratio Reuse of the tests." in text
        with pytest.raises(OSError, match="telemetry.metrics_port to a free port"):
            start_pages(server.port)
    finally:
        server.close()


@pytest.mark.parametrize(("arguments", "says"), [
    (("tested", "Bad-Name", "total", "X."), "lower case words"),
    (("tested", "x", "parsecs", "X."), "metric unit 'parsecs'"),
    (("tested", "x", "seconds", "no full stop"), "is a sentence"),
    (("tested", "x", "total", "X."), "only they, have the unit 'total'"),
])
def test_metrics_outside_the_scheme_are_refused(arguments: tuple[str, str, str, str], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        metrics.gauge(*arguments)


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
