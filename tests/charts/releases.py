"""A release in a cluster of its own, which has an API and nothing that runs."""

import copy
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from kubernetes import client

from services.controller.kubernetes_api import KubernetesApi
from tests.charts.apiserver.server import cluster
from tests.charts.apiserver.store import Store, Writer
from tests.charts.rendering import CHART, ROOT, Object, tool

NAMESPACE = "five"
# Objects by resource and name.
Objects = dict[tuple[str, str], Object]


class Release:
    """Release `five` in namespace `five`, as docs/operations.md has it."""

    def __init__(self, helm: str, store: Store, config: Path) -> None:
        self.helm = helm
        self.store = store
        self.config = config

    def run(self, program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """helm, or kubectl, with this cluster."""
        environment = {"HOME": str(self.config.parent), "KUBECONFIG": str(self.config), "PATH": "/usr/bin:/bin",
                       "HELM_BURST_LIMIT": "10000", "HELM_QPS": "10000"}
        return subprocess.run([tool(self.helm, program), *arguments, "-n", NAMESPACE], text=True, capture_output=True,
                              timeout=60, cwd=ROOT, env=environment)

    def done(self, command: str, *more: str | Path, program: str = "helm") -> str:
        """What it says. Raises AssertionError with its words when it fails."""
        result = self.run(program, *command.split(), *more)
        assert result.returncode == 0, f"{command}: {result.stderr}"
        return result.stdout

    def refused(self, command: str, *more: str | Path) -> str:
        """Its words on what it has to refuse. Raises AssertionError when it takes it."""
        result = self.run("helm", *command.split(), *more)
        assert result.returncode != 0, f"{command}: accepted"
        return result.stderr

    def autoscaler_sets(self, deployment: str, replicas: int) -> None:
        """As the controller does in a cluster."""
        (found,) = yaml.safe_load(self.config.read_text())["clusters"]
        configuration = client.Configuration(host=found["cluster"]["server"])
        api = KubernetesApi(client.ApiClient(configuration), NAMESPACE, 10)
        api.resize(deployment, replicas, api.scale(deployment).version)

    def objects(self) -> Objects:
        """All that there is in the namespace but helm's own records."""
        with self.store.changed:
            return {(resource, name): copy.deepcopy(s.value)
                    for (resource, namespace, name), s in self.store.objects.items()
                    if namespace == NAMESPACE and s.value.get("type") != "helm.sh/release.v1"}

    def object(self, resource: str, name: str) -> Object:
        """One of them, without the release's prefix."""
        return self.objects()[resource, f"five-{name}"]


@contextmanager
def release(helm: str, folder: Path) -> Iterator[Release]:
    """An empty namespace `five`."""
    with cluster(folder) as (store, config):
        made = Release(helm, store, config)
        with store.changed:
            store.create_namespace(NAMESPACE, Writer("test"))
            store.writes.clear()
        yield made


def later_chart(folder: Path, version: str, app: str) -> Path:
    """A copy of the chart as a later version of it, for a later version of the platform."""
    copied = Path(shutil.copytree(CHART, folder / "charts"))
    head = yaml.safe_load((copied / "Chart.yaml").read_text())
    (copied / "Chart.yaml").write_text(yaml.safe_dump({**head, "version": version, "appVersion": app}))
    return copied


def secrets(found: Objects) -> dict[str, Object]:
    """What is in each Secret."""
    return {name: o["data"] for (resource, name), o in found.items() if resource == "secrets"}


def claims(found: Objects) -> dict[str, str]:
    """Each claim's volume: another one is another uid."""
    return {name: o["metadata"]["uid"] for (resource, name), o in found.items() if resource == "persistentvolumeclaims"}


def templates(found: Objects) -> dict[str, Object]:
    """What pods are made from."""
    return {name: o["spec"]["template"] for (_, name), o in found.items() if "template" in o.get("spec", {})}
