"""Metrics: their page in the docs, and promtool's lint of their names."""

import subprocess
import sys

from prometheus_client import generate_latest

from rapid.telemetry.metrics import REGISTRY, definitions
from tests.telemetry.expressions import ROOT, of_dashboards, of_rules, used
from tools.metrics_page import import_all


def test_the_reference_is_current() -> None:
    """`python -m tools.metrics_page` writes it, in a process of its own because tests define metrics too."""
    code = "from tools.metrics_page import PAGE, page; import sys; sys.exit(PAGE.read_text() != page())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env={"PYTHONPATH": "libs:."}, timeout=60)
    assert done.returncode == 0, "docs/metrics.md is old: python -m tools.metrics_page"


def test_names_pass_prometheus_linter(promtool: str) -> None:
    import_all()
    page = generate_latest(REGISTRY)
    assert len(definitions()) > 80
    done = subprocess.run([promtool, "check", "metrics"], input=page, capture_output=True, timeout=60)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()


def test_every_metric_is_used() -> None:
    """Every metric is on a dashboard, in an alert, or its definition names another use."""
    import_all()
    asked = {u.metric for e in [*of_dashboards(), *of_rules()] for u in used(e.text.replace("$__rate_interval", "1m"))}
    shown = {d.name for d in definitions() if d.service != "tested"}
    idle = {name for name in shown if not {name, f"{name}_bucket", f"{name}_sum", f"{name}_count"} & asked}
    assert idle <= ELSEWHERE, f"nobody looks at {sorted(idle - ELSEWHERE)}"


# Metrics for investigations, without a panel.
ELSEWHERE = {
    "five_controller_play_unreadable_total",  # messages of a page that is older than the controller
    "five_play_recorded_bytes",  # bounded by services.play.recordings_mebibytes
    "five_optimizer_sample_reuse_ratio",  # the dashboards measure it over all optimizers
}
