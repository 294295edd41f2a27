"""Cached renderings of the chart by `helm template`."""

import functools
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts"
RELEASE, NAMESPACE = "five", "five-system"
HELMS = ("helm4", "helm3")
Object = dict[str, Any]


@dataclass(frozen=True)
class Values:
    """Input of a rendering: value files, then single values (``a.b=c``)."""

    name: str
    files: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()

    def arguments(self) -> list[str]:
        """Return the values as helm command-line arguments."""
        return [*(part for file in self.files for part in ("-f", file)), *(part for s in self.sets for part in
                                                                           ("--set", s))]


# Violates Pod Security and checkov policies, so it is not shipped with the chart.
RDMA = Values("rdma", (str(ROOT / "tests/charts/rdma-values.yaml"),))


def value_files() -> list[Values]:
    """Return the defaults, each values file that ships with the chart, and each variant under ci/.

    A values file that is layered over another one names the full command in its first lines.
    """
    found = [Values("defaults")]
    for file in [*sorted(CHART.glob("values-*.yaml")), *sorted((CHART / "ci").glob("*.yaml"))]:
        head = re.findall(r"-f (charts/\S+\.yaml)", file.read_text())
        assert not head or head[-1] == str(file.relative_to(ROOT)), f"{file}: its command does not end with itself"
        found.append(Values(str(file.relative_to(CHART)), tuple(str(ROOT / f) for f in head) or (str(file),)))
    return found


def variants() -> list[Values]:
    """Return all values files, plus variants that no file covers."""
    return [*value_files(), RDMA, Values("hpa by signals", sets=("autoscaling.mode=hpa",)),
            Values("keda", sets=("autoscaling.mode=keda",))]


def tool(helm: str, name: str = "helm") -> Path:
    """Return the path of a program that `make test-chart` installed. Raises FileNotFoundError."""
    path = ROOT / "build" / helm / name
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: python3 .ci/get-helm.py build/{helm} {helm[-1]}")
    return path


def run(helm: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run helm without the user's settings and without a cluster."""
    nowhere = ROOT / "build" / "no-helm-home"
    return subprocess.run(
        [tool(helm), *arguments], text=True, capture_output=True, timeout=240,
        env={"HOME": str(nowhere), "KUBECONFIG": "/dev/null", "PATH": "/usr/bin:/bin"})


@functools.cache
def text(values: Values, helm: str = "helm4") -> str:
    """Return the output of `helm template`. Raises AssertionError with helm's message when it fails or warns."""
    done = run(helm, "template", RELEASE, CHART, "--namespace", NAMESPACE, *values.arguments())
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return done.stdout


@functools.cache
def _objects(values: Values, helm: str) -> tuple[Object, ...]:
    return tuple(o for o in yaml.load_all(text(values, helm), Loader=yaml.CSafeLoader) if o)


def objects(values: Values, kind: str = "", helm: str = "helm4") -> list[Object]:
    """Return the rendered objects, of one kind if given. The objects are shared: change a copy."""
    return [o for o in _objects(values, helm) if not kind or o["kind"] == kind]


def find(values: Values, kind: str, name: str) -> Object:
    """Return the object of that kind and name, without the release prefix. Raises AssertionError when it is missing."""
    for found in objects(values, kind):
        if found["metadata"]["name"] == f"{RELEASE}-{name}":
            return found
    raise AssertionError(f"{values.name}: no {kind} {RELEASE}-{name}")


def refusal(values: Values, helm: str = "helm4") -> str:
    """Return helm's error for values that it must refuse. Raises AssertionError when it accepts them."""
    done = run(helm, "template", RELEASE, CHART, "--namespace", NAMESPACE, *values.arguments())
    assert done.returncode != 0, f"{values.name}: accepted"
    return done.stderr


def pods(found: Iterable[Object]) -> Iterator[tuple[str, Object, Object]]:
    """Yield name, metadata and spec of every pod and pod template."""
    for o in found:
        if o["kind"] == "Pod":
            yield f"Pod/{o['metadata']['name']}", o["metadata"], o["spec"]
        elif o["kind"] == "CronJob":
            template = o["spec"]["jobTemplate"]["spec"]["template"]
            yield f"CronJob/{o['metadata']['name']}", template["metadata"], template["spec"]
        elif "template" in (o.get("spec") or {}) and o["kind"] in ("Deployment", "StatefulSet", "Job", "DaemonSet"):
            template = o["spec"]["template"]
            yield f"{o['kind']}/{o['metadata']['name']}", template["metadata"], template["spec"]


def containers(spec: Object) -> list[Object]:
    """Return every container of a pod, init containers first."""
    return [*spec.get("initContainers", []), *spec["containers"]]


def matches(selector: Object, labels: dict[str, str]) -> bool:
    """Return whether a label selector matches the labels."""
    if any(labels.get(key) != value for key, value in selector.get("matchLabels", {}).items()):
        return False
    for rule in selector.get("matchExpressions", []):
        present, value = rule["key"] in labels, labels.get(rule["key"])
        ok = {"In": lambda r=rule, v=value: v in r["values"], "NotIn": lambda r=rule, v=value: v not in r["values"],
              "Exists": lambda p=present: p, "DoesNotExist": lambda p=present: not p}[rule["operator"]]()
        if not ok:
            return False
    return True


def run_config(values: Values) -> str:
    """Return the rendered configuration file that every service reads."""
    return str(find(values, "ConfigMap", "run")["data"]["run.yaml"])
