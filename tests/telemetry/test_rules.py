"""Alert rules: complete, explained, and tested by promtool."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.telemetry.expressions import ROOT, RULES, rules

CASES = Path(__file__).with_name("rules_test.yaml")
ALERTS = rules()
NAMES = [rule["alert"] for rule in ALERTS]


def anchors(text: str) -> set[str]:
    """Return the anchors of a Markdown page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)
    return {re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_names_are_unique() -> None:
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("rule", ALERTS, ids=NAMES)
def test_alerts_have_summary_and_runbook(rule: dict[str, Any]) -> None:
    assert rule["alert"].startswith("Five")
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    assert "$labels.run" in rule["annotations"]["summary"] + rule["annotations"]["description"]
    assert not rule["annotations"]["summary"].endswith(".") and rule["annotations"]["description"].endswith(".")
    # A single bad scrape must not alert: an alert without `for` uses a window or a lasting state.
    assert "for" in rule or re.search(r"\[\d+[mh]\]", rule["expr"]) or "run_state" in rule["expr"]
    page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    assert anchor in anchors((ROOT / page).read_text()), f"{page} has no heading {rule['alert']}"


def test_prometheus_accepts_the_rules(promtool: str) -> None:
    done = subprocess.run([promtool, "check", "rules", str(RULES)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.runs
def test_alerts_fire_only_in_their_cases(promtool: str) -> None:
    done = subprocess.run([promtool, "test", "rules", str(CASES)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    expected = {label for case in yaml.safe_load(CASES.read_text())["tests"]
                for check in case.get("promql_expr_test", []) for sample in check["exp_samples"]
                for label in re.findall(r'alertname="(\w+)"', sample["labels"])}
    expected |= {check["alertname"] for case in yaml.safe_load(CASES.read_text())["tests"]
                 for check in case.get("alert_rule_test", []) if check["exp_alerts"]}
    assert expected == set(NAMES), "an alert has no case in which it fires"


@pytest.mark.runs
def test_rule_test_cases_can_fail(promtool: str, tmp_path: Path) -> None:
    """The same cases fail with a rule that never fires."""
    broken = yaml.safe_load(RULES.read_text())
    broken["groups"][0]["rules"][0]["expr"] += " * 1000"
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(broken))
    cases = CASES.read_text().replace("../../charts/files/rules.yaml", "rules.yaml")
    (tmp_path / "cases.yaml").write_text(cases)
    done = subprocess.run([promtool, "test", "rules", str(tmp_path / "cases.yaml")], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode != 0 and "FiveStale" in done.stdout + done.stderr
