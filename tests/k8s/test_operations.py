"""The operator's pages quote existing log lines, commands, routes and panels, and have an entry for each alert."""

import ast
import functools
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from five.cli.commands import parser
from tests.charts.restarts_table import changes, told
from tests.docs.named import slugs

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/operations.md").read_text()
ALERTS = (ROOT / "docs/alerts.md").read_text()
LOGS = (ROOT / "docs/logs.md").read_text()


@functools.cache
def texts() -> str:
    """Return every string literal of the code, one a line, without interpolated values."""
    found = []
    for path in [*(ROOT / "libs").rglob("*.py"), *(ROOT / "services").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                found.append("".join(str(v.value) if isinstance(v, ast.Constant) else "\0" for v in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(re.sub(r"%[.0-9]*[sdgf]", "\0", node.value))
    return "\n".join(found)


# Placeholders, which differ between cases.
FILLED = re.compile(r"^waiting: |\.\.\.|\d+|'[^']*'|redis://\S*|\(optimizer\)|SIGTERM|FIVE_STATE_PASSWORD|\bstate\b")


def fragments(line: str) -> list[str]:
    """Return the constant pieces of a quoted line."""
    pieces = [piece.strip(" :,.()") for piece in FILLED.split(line)]
    return [piece for piece in pieces if len(piece) >= 8]


LINES = [line for row in re.findall(r"^\| (`.*?) \|", LOGS, re.M)
         for line in re.findall(r"`([^`]+)`", row)]


def test_there_are_lines() -> None:
    assert len(LINES) > 25


@pytest.mark.parametrize("line", LINES)
def test_the_code_writes_that_line(line: str) -> None:
    assert fragments(line)
    for fragment in fragments(line):
        assert fragment in texts(), fragment


def test_every_five_command_is_one() -> None:
    """The parser accepts each command with its arguments."""
    commands = [line.split("  ")[0] for line in re.findall(r"^five (.*)$", PAGE, re.M)]
    commands += re.findall(r"`five ([^`]+)`", PAGE)
    assert len(commands) > 8
    for command in commands:
        words = [w.strip('"') for w in re.findall(r'"[^"]*"|\S+', command.split("#")[0].rstrip())]
        parser().parse_args(words)


def test_every_route_is_one() -> None:
    source = "".join(path.read_text() for path in (ROOT / "services/controller/routes").glob("*.py"))
    for method, path in re.findall(r"`?(GET|POST|PUT) (/v1/[\w/{}]+)", PAGE):
        assert f'@router.{method.lower()}("{path.removeprefix("/v1")}' in source, (method, path)


def alerts() -> dict[str, str]:
    """Return the runbook link of each alert."""
    rules = yaml.safe_load((ROOT / "charts/files/rules.yaml").read_text())
    found = [rule for group in rules["groups"] for rule in group["rules"] if "alert" in rule]
    assert found
    return {rule["alert"]: rule["annotations"]["runbook_url"] for rule in found}


def test_every_alert_has_its_place() -> None:
    for alert, address in alerts().items():
        file, _, anchor = address.partition("#")
        assert file.endswith("docs/alerts.md"), alert
        assert anchor in slugs(ALERTS), alert
        assert alert in ALERTS, alert


def test_every_described_alert_exists() -> None:
    described = re.findall(r"\bFive[A-Z]\w+", ALERTS)
    assert described and set(described) <= alerts().keys()


def panels() -> dict[str, set[str]]:
    """Return panel titles by dashboard title."""
    def titles(items: list[dict[str, Any]]) -> set[str]:
        return {i["title"] for i in items if i["type"] != "row"} | {
            t for i in items for t in titles(i.get("panels", []))}

    boards = [json.loads(path.read_text()) for path in (ROOT / "charts/dashboards").glob("*.json")]
    return {board["title"].removeprefix("Five / "): titles(board["panels"]) for board in boards}


def test_every_panel_of_data_quality_is_explained() -> None:
    section = ALERTS[ALERTS.index("### Data quality"):ALERTS.index("### The other pages")]
    assert set(re.findall(r"\*\*([^*]+)\*\*", section)) == panels()["Data quality"]


def test_panels_that_are_named_are_there() -> None:
    known = set().union(*panels().values())
    section = ALERTS[ALERTS.index("### The other pages"):ALERTS.index("## Alerts")]
    assert set(re.findall(r"\*\*([^*]+)\*\*", section)) <= known
    for page, panel in re.findall(r"\*([\w ]+) → ([^*]+)\*", ALERTS):
        assert any(panel in titles for title, titles in panels().items() if title.startswith(page)), (page, panel)


def test_the_table_of_restarts_has_every_value() -> None:
    """`make test-chart`, which has helm, compares the restarted components."""
    assert set(told(PAGE)) == {path for path, _ in changes()}, (
        "python .ci/get-helm.py build/helm4 4, then make generate")
