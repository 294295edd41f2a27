"""Objects for the Prometheus operator and Grafana's sidecar."""

import json
import shutil
import subprocess
from pathlib import Path

import yaml

from tests.charts.rendering import CHART, Values, containers, matches, objects, pods, run, text

DEFAULTS = Values("defaults")
ON = ("monitoring.serviceMonitor.enabled=true", "monitoring.prometheusRule.enabled=true",
      "monitoring.dashboards.enabled=true")
MONITORED = Values("monitored", sets=ON)
WIDE = Values("monitored, several pages a pod", sets=(
    *ON, "dotaEnv.perRollout=2", "run.preset=gpu-node", "optimizer.gpu.count=4"))
APART = Values("monitored, games apart", sets=(*ON, "dotaEnv.placement=deployment"))


def test_nothing_of_it_by_default() -> None:
    kinds = {o["kind"] for o in objects(DEFAULTS)}
    assert not kinds & {"ServiceMonitor", "PodMonitor", "PrometheusRule"}


def test_every_page_is_scraped_once() -> None:
    for values in (MONITORED, WIDE, APART):
        pages = [(name, p["containerPort"]) for name, _, spec in pods(objects(values)) for c in containers(spec)
                 for p in c.get("ports", []) if "metrics" in p["name"]]
        scraped = []
        services = find_all(values, "ServiceMonitor")["spec"]
        for service in objects(values, "Service"):
            if not matches(services["selector"], service["metadata"]["labels"]):
                continue
            targets = {p["targetPort"] for p in service["spec"]["ports"]
                       if p["name"] in [e["port"] for e in services["endpoints"]]}
            scraped += [(name, p["containerPort"]) for name, meta, spec in pods(objects(values))
                        if matches({"matchLabels": service["spec"]["selector"]}, meta["labels"])
                        for c in containers(spec) for p in c.get("ports", []) if p["name"] in targets]
        by_pod = find_all(values, "PodMonitor")["spec"]
        wanted = [e["port"] for e in by_pod["podMetricsEndpoints"]]
        scraped += [(name, p["containerPort"]) for name, meta, spec in pods(objects(values))
                    if matches(by_pod["selector"], meta["labels"])
                    for c in containers(spec) for p in c.get("ports", []) if p["name"] in wanted]
        assert sorted(scraped) == sorted(pages), values.name
        assert len(pages) == len(set(pages)) >= 6


def test_metrics_ports_are_not_exposed() -> None:
    """Metrics endpoints have no authentication."""
    (controller,) = [s for s in objects(MONITORED, "Service") if s["metadata"]["name"] == "five-controller"]
    assert [p["name"] for p in controller["spec"]["ports"]] == ["http"]


def find_all(values: Values, kind: str) -> dict:  # type: ignore[type-arg]
    (found,) = objects(values, kind)
    return found


def test_the_rules_are_the_file_and_prometheus_takes_them(tmp_path: Path) -> None:
    values = Values("runbooks", sets=(*ON, "monitoring.prometheusRule.runbookUrl=https://docs.example/alerts/"))
    rendered = find_all(values, "PrometheusRule")["spec"]
    source = (CHART / "files/rules.yaml").read_text()
    assert rendered == yaml.safe_load(source.replace("docs/alerts.md#", "https://docs.example/alerts/#"))
    promtool = shutil.which("promtool")
    assert promtool, "promtool is missing: apt-get install prometheus"
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump(rendered))
    done = subprocess.run([promtool, "check", "rules", path], capture_output=True, text=True)
    assert done.returncode == 0 and "SUCCESS" in done.stdout, done.stdout + done.stderr


def test_alerts_have_no_relative_runbook() -> None:
    """A relative address is useless in an e-mail or a chat."""
    rules = [rule for group in find_all(MONITORED, "PrometheusRule")["spec"]["groups"] for rule in group["rules"]]
    assert rules and not [rule for rule in rules if "runbook_url" in rule.get("annotations", {})]


def dashboards(*arguments: str) -> list[dict]:  # type: ignore[type-arg]
    """Return the dashboards' ConfigMaps of a release by other arguments of `helm template`."""
    done = run("helm4", "template", *arguments, "--set", "monitoring.dashboards.enabled=true",
               "--set", "monitoring.dashboards.namespace=grafana")
    assert done.returncode == 0, done.stderr
    found = [o for o in yaml.load_all(done.stdout, Loader=yaml.CSafeLoader) if o and o["kind"] == "ConfigMap"]
    return [o for o in found if "grafana_dashboard" in o["metadata"]["labels"]]


def test_dashboards_of_two_releases_do_not_collide() -> None:
    """In one Grafana: the ConfigMaps, the sidecar's files and the dashboards' uids differ."""
    releases = [dashboards(name, str(CHART), "-n", namespace)
                for name, namespace in (("five", "a"), ("five", "b"), ("other", "a"))]
    count = len(list((CHART / "dashboards").glob("*.json")))
    boards = [json.loads(text) for release in releases for o in release for text in o["data"].values()]
    for distinct in ({o["metadata"]["name"] for release in releases for o in release},
                     {file for release in releases for o in release for file in o["data"]},
                     {board["uid"] for board in boards}, {board["title"] for board in boards}):
        assert len(distinct) == 3 * count
    assert all(len(board["uid"]) <= 40 for board in boards), "Grafana's limit"


def test_dashboards_are_config_maps_that_the_sidecar_finds() -> None:
    files = {f.name: f for f in (CHART / "dashboards").glob("*.json")}
    assert files
    found = [o for o in objects(MONITORED, "ConfigMap") if o["metadata"]["labels"].get("grafana_dashboard") == "1"]
    assert {name for o in found for name in o["data"]} == {f"five-system-five-{name}" for name in files}
    for o in found:
        ((name, text),) = o["data"].items()
        assert len(text.encode()) < 1 << 20, "a ConfigMap may not exceed 1 MiB"
        board, file = json.loads(text), json.loads(files[name.removeprefix("five-system-five-")].read_text())
        assert {**board, "uid": "", "title": ""} == {**file, "uid": "", "title": ""}
        assert board["title"] == file["title"].replace("Five /", "Five / five-system/five /")


def test_labels_and_namespaces_are_by_value() -> None:
    """A label that selects an object replaces the global one of its name."""
    values = Values("labelled", sets=(*ON, "global.labels.release=five", "global.labels.grafana_dashboard=five",
                                      "monitoring.serviceMonitor.labels.release=prom",
                                      "monitoring.prometheusRule.labels.release=prom",
                                      "monitoring.dashboards.namespace=grafana",
                                      "monitoring.dashboards.annotations.folder=Five",
                                      "monitoring.serviceMonitor.interval=30s"))
    for kind in ("ServiceMonitor", "PodMonitor", "PrometheusRule"):
        assert find_all(values, kind)["metadata"]["labels"]["release"] == "prom"
    assert find_all(values, "ServiceMonitor")["spec"]["endpoints"][0]["interval"] == "30s"
    for document in text(values).split("\n---\n"):
        assert document.count("\n    release: ") <= 1, "kustomize refuses a label that is there twice"
    boards = [o for o in objects(values, "ConfigMap") if o["metadata"]["labels"]["grafana_dashboard"] == "1"]
    assert boards and all(o["metadata"]["namespace"] == "grafana" and
                          o["metadata"]["annotations"] == {"folder": "Five"} for o in boards)
