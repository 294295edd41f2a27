"""PromQL expressions of the dashboards and the rules, and the metrics that they use."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import promql_parser
import yaml

from rapid.telemetry.metrics import COMMON_LABELS, Definition, definitions
from tools.metrics_page import import_all

ROOT = Path(__file__).resolve().parents[2]
DASHBOARDS = ROOT / "charts" / "dashboards"
RULES = ROOT / "charts" / "files" / "rules.yaml"

# Labels that Prometheus and a cluster's scrape add to every sample.
TARGET_LABELS = frozenset({"job", "instance", "namespace", "pod", "container", "service"})
PROCESS = ("process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "process_max_fds",
           "process_start_time_seconds")
FOREIGN = {"up": frozenset[str](), "kube_pod_container_status_restarts_total": frozenset({"uid"})}


class Expression(NamedTuple):
    """A PromQL expression; ``where`` names its dashboard and panel, or its alert."""

    where: str
    text: str


class Used(NamedTuple):
    """A metric in an expression, with the labels of its selectors."""

    metric: str
    labels: frozenset[str]


def filled(text: str, run: str = "", namespace: str = ".*", interval: str = "30s") -> str:
    """Return a dashboard's expression with Grafana's variables substituted."""
    return (text.replace("$__rate_interval", interval).replace("$namespace", namespace)
            .replace("$run", run or ".*"))


def dashboards() -> dict[str, dict[str, Any]]:
    """Return all dashboards of the chart."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(DASHBOARDS.glob("*.json"))}


def panels(board: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the panels with data."""
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def of_dashboards() -> list[Expression]:
    """Return every query of every panel. Names are unique: in a row, a number and a chart may have the same title."""
    found = []
    for name, board in dashboards().items():
        row = ""
        for panel in board["panels"]:
            if panel["type"] == "row":
                row = panel["title"]
                continue
            title = f"{name}: {row}: {panel['title']}{' (number)' if panel['type'] == 'stat' else ''}"
            found += [Expression(f"{title} {target['refId']}", target["expr"]) for target in panel["targets"]]
    return found


def rules() -> list[dict[str, Any]]:
    """Return all alerts."""
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def of_rules() -> list[Expression]:
    """Return the expression of every alert."""
    return [Expression(rule["alert"], rule["expr"]) for rule in rules()]


def nodes(text: str) -> list[Any]:
    """Return the nodes of an expression. Raise ValueError when it does not parse."""
    found: list[Any] = []

    def visit(node: Any) -> bool:
        found.append(node)
        return True

    promql_parser.walk(promql_parser.parse(text), visit)
    return found


def used(text: str) -> list[Used]:
    """Return the metrics that an expression selects."""
    return [Used(node.name, frozenset(m.name for m in node.matchers.matchers)) for node in nodes(text)
            if isinstance(node, promql_parser.VectorSelector)]


def grouped(text: str) -> frozenset[str]:
    """Return the labels that an expression groups or matches by."""
    labels: set[str] = set()
    for node in nodes(text):
        if isinstance(node, promql_parser.AggregateExpr) and node.modifier is not None:
            labels |= set(node.modifier.labels)
        if isinstance(node, promql_parser.BinaryExpr) and node.modifier is not None:
            if node.modifier.matching is not None:
                labels |= set(node.modifier.matching.labels)
            labels |= set(node.modifier.group_labels or [])
    return frozenset(labels)


def known() -> dict[str, frozenset[str]]:
    """Return the labels of every series that the services export, by name."""
    import_all()
    series = {name: labels for d in definitions() if d.service != "tested" for name, labels in _series(d)}
    for name in PROCESS:
        series[name] = frozenset(COMMON_LABELS)
    return series | FOREIGN


def _series(definition: Definition) -> Iterator[tuple[str, frozenset[str]]]:
    labels = frozenset(definition.labels) | frozenset(COMMON_LABELS)
    if definition.kind == "histogram":
        yield f"{definition.name}_bucket", labels | {"le"}
        yield f"{definition.name}_sum", labels
        yield f"{definition.name}_count", labels
    else:
        yield definition.name, labels
