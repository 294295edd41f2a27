"""Dashboards and alerts use only exported metrics and labels."""

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.telemetry import expressions
from tests.telemetry.expressions import TARGET_LABELS, Expression, filled, grouped, known, used

EVERY = [*expressions.of_dashboards(), *expressions.of_rules()]


def problems(text: str) -> list[str]:
    """Return the unknown metrics and labels of an expression."""
    series = known()
    found = []
    labels: set[str] = set(TARGET_LABELS)
    for metric, matched in used(text):
        if metric not in series:
            found.append(f"no service shows {metric}")
            continue
        labels |= series[metric]
        found += [f"{metric} has no label {label}" for label in sorted(matched - series[metric] - TARGET_LABELS)]
    return found + [f"nothing selected has the label {label}" for label in sorted(grouped(text) - labels - {"le"})]


def test_every_query_has_its_own_name() -> None:
    names = [expression.where for expression in EVERY]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("expression", EVERY, ids=lambda e: e.where)
def test_every_expression_parses_and_names_what_exists(expression: Expression) -> None:
    text = filled(expression.text)
    assert "$" not in text, "a variable that Grafana does not know"
    assert used(text), "nothing is selected"
    assert problems(text) == []


@pytest.mark.parametrize(("text", "says"), [
    ("rate(five_optimizer_stalenes_versions_sum[5m])", "no service shows five_optimizer_stalenes_versions_sum"),
    ('five_optimizer_buffer_age_versions{statistik="mean"}', "has no label statistik"),
    ("sum by (quantile) (five_optimizer_buffer_samples)", "nothing selected has the label quantile"),
])
def test_unknown_metrics_are_detected(text: str, says: str) -> None:
    assert any(says in problem for problem in problems(text))


def test_prometheus_accepts_every_expression(promtool: str, tmp_path: Path) -> None:
    """promtool checks them as rules, because the parser above is not Prometheus's."""
    rules = [{"record": f"checked:{i}", "expr": filled(e.text)} for i, e in enumerate(EVERY)]
    path = tmp_path / "expressions.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "expressions", "rules": rules}]}))
    done = subprocess.run([promtool, "check", "rules", str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(rules)} rules found" in done.stdout
