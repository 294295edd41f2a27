"""Helm release in an in-memory cluster, which has an API and runs nothing, or in a real one.

FIVE_CLUSTER names the kubeconfig of a real cluster (`make test-cluster` sets it). The tests create the namespace `five`
there and remove it; an existing one is left alone and fails the tests. FIVE_CLUSTER_VALUES is a values file for that
cluster (registry, storage class), used by every installation and upgrade; with it `helm test` runs too.
FIVE_CLUSTER_TAG is a second image tag in that registry, for the upgrade.
"""

import copy
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from kubernetes import client, config

from five.services.controller.autoscaler.kubernetes_api import KubernetesApi
from tests.charts.apiserver.server import cluster
from tests.charts.apiserver.store import Store, Writer
from tests.charts.rendering import CHART, ROOT, Object, tool

NAMESPACE = "five"
CLUSTER = os.environ.get("FIVE_CLUSTER", "")
CLUSTER_VALUES = os.environ.get("FIVE_CLUSTER_VALUES", "")
# Whether `helm test` means anything: against the stand-in it passes without running.
TESTED = not CLUSTER or bool(CLUSTER_VALUES)


def later_tag() -> str:
    """Return the image tag of the upgrade. A real cluster pulls it: there it is FIVE_CLUSTER_TAG, or else the installed
    one."""
    if not CLUSTER:
        return "v9"
    values = yaml.safe_load(Path(CLUSTER_VALUES).read_text()) if CLUSTER_VALUES else {}
    installed = values.get("global", {}).get("image", {}).get("tag", "")
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    return os.environ.get("FIVE_CLUSTER_TAG") or str(installed or chart["appVersion"])


# Objects by resource and name.
Objects = dict[tuple[str, str], Object]


class Release:
    """Release `five` in namespace `five`, as docs/operations.md describes it."""

    def __init__(self, helm: str, store: Store | None, config: Path, folder: Path) -> None:
        self.helm = helm
        self.config = config
        self.folder = folder
        self._store = store

    @property
    def store(self) -> Store:
        """Store of the in-memory cluster, with all writes. Skips the test on a real cluster."""
        if self._store is None:
            pytest.skip("what was written can be counted on the stand-in alone")
        return self._store

    def run(self, program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run helm or kubectl against this cluster."""
        environment = {"HOME": str(self.folder), "KUBECONFIG": str(self.config), "PATH": "/usr/bin:/bin",
                       "HELM_BURST_LIMIT": "10000", "HELM_QPS": "10000"}
        more: list[str] = []
        if self._store is None:
            environment |= {name: os.environ[name] for name in ("HOME", "PATH")}  # for a log-in by a program
            if program == "helm" and arguments[0] in ("install", "upgrade") and CLUSTER_VALUES:
                more = ["-f", CLUSTER_VALUES]
            if program == "helm" and arguments[0] in ("uninstall", "test"):
                more = ["--wait"] if arguments[0] == "uninstall" else ["--timeout", "2400s"]
        return subprocess.run([tool(self.helm, program), *arguments, *more, "-n", NAMESPACE], text=True,
                              capture_output=True, timeout=240 if self._store else 3000, cwd=ROOT, env=environment)

    def done(self, command: str, *more: str | Path, program: str = "helm") -> str:
        """Run a command that must succeed and return its output. Raises AssertionError with that output."""
        result = self.run(program, *command.split(), *more)
        assert result.returncode == 0, f"{command}: {result.stderr}"
        return result.stdout

    def refused(self, command: str, *more: str | Path) -> str:
        """Run a command that must fail and return its error output. Raises AssertionError when it succeeds."""
        result = self.run("helm", *command.split(), *more)
        assert result.returncode != 0, f"{command}: accepted"
        return result.stderr

    def autoscaler_sets(self, deployment: str, replicas: int) -> None:
        """Scale a Deployment the way the controller does."""
        if self._store is None:
            connection = config.new_client_from_config(str(self.config))
        else:
            (found,) = yaml.safe_load(self.config.read_text())["clusters"]
            connection = client.ApiClient(client.Configuration(host=found["cluster"]["server"]))
        api = KubernetesApi(connection, NAMESPACE, 10)
        api.resize(deployment, replicas, api.scale(deployment).version)

    def objects(self) -> Objects:
        """Return all objects of the namespace except helm's own records. On a real cluster: those with the release's
        label and without an owner."""
        if self._store is None:
            return self._listed()
        with self.store.changed:
            return {(resource, name): copy.deepcopy(s.value)
                    for (resource, namespace, name), s in self.store.objects.items()
                    if namespace == NAMESPACE and s.value.get("type") != "helm.sh/release.v1"}

    def _listed(self) -> Objects:
        found: Objects = {}
        for resource in self.done("api-resources --namespaced --verbs=list -o name", program="kubectl").split():
            if resource.startswith(("events", "endpoints", "endpointslices")):
                continue
            listed = self.done(f"get {resource} -l app.kubernetes.io/instance=five -o json", program="kubectl")
            for o in json.loads(listed)["items"]:
                if not o["metadata"].get("ownerReferences"):
                    found[resource, o["metadata"]["name"]] = o
        return found

    def object(self, resource: str, name: str) -> Object:
        """Return one object by its name without the release prefix."""
        return self.objects()[resource, f"five-{name}"]


@contextmanager
def release(helm: str, folder: Path) -> Iterator[Release]:
    """Yield a release in an empty namespace `five`. Raises AssertionError when a real cluster already has that
    namespace."""
    if CLUSTER:
        yield from _on_cluster(Release(helm, None, Path(CLUSTER).resolve(), folder))
        return
    with cluster(folder) as (store, config):
        made = Release(helm, store, config, folder)
        with store.changed:
            store.create_namespace(NAMESPACE, Writer("test"))
            store.writes.clear()
        yield made


def _on_cluster(made: Release) -> Iterator[Release]:
    file = made.folder / "namespace.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))
    there = made.run("kubectl", "create", "-f", file)
    assert there.returncode == 0, f"the stories make and remove namespace {NAMESPACE}: {there.stderr}"
    try:
        yield made
    finally:
        made.run("helm", "uninstall", "five")  # there need not be one any more
        made.run("kubectl", "delete", "pod,secret,pvc", "-l", "app.kubernetes.io/instance=five")
        made.done(f"delete namespace {NAMESPACE}", program="kubectl")


def later_chart(folder: Path, version: str, app: str) -> Path:
    """Copy the chart with a later chart version and a later platform version."""
    copied = Path(shutil.copytree(CHART, folder / "charts"))
    head = yaml.safe_load((copied / "Chart.yaml").read_text())
    (copied / "Chart.yaml").write_text(yaml.safe_dump({**head, "version": version, "appVersion": app}))
    return copied


def secrets(found: Objects) -> dict[str, Object]:
    """Return the data of each Secret."""
    return {name: o["data"] for (resource, name), o in found.items() if resource == "secrets"}


def claims(found: Objects) -> dict[str, str]:
    """Return the uid of each volume claim: a replaced claim has another uid."""
    return {name: o["metadata"]["uid"] for (resource, name), o in found.items() if resource == "persistentvolumeclaims"}


def templates(found: Objects) -> dict[str, Object]:
    """Return the pod template of each workload."""
    return {name: o["spec"]["template"] for (_, name), o in found.items() if "template" in o.get("spec", {})}
