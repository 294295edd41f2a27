"""Fixtures that render k8s/ over the chart with the tools in build/helm4 and build/helm3."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
Objects = dict[tuple[str, str], dict[str, Any]]


def _tool(folder: str, name: str) -> Path:
    path = ROOT / "build" / folder / name
    if not path.exists():
        pytest.fail(f"{path} is missing: python3 .ci/get-helm.py build/{folder} {folder[-1]}")
    return path


@pytest.fixture(scope="session", params=["helm4", "helm3"])
def either_helm(request: pytest.FixtureRequest) -> Path:
    """Name of the helm version: helm4, then helm3."""
    return _tool(request.param, "helm")


@pytest.fixture(scope="session")
def helm() -> Path:
    return _tool("helm4", "helm")


@pytest.fixture(scope="session")
def kubectl() -> Path:
    return _tool("helm4", "kubectl")


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy of k8s/ and charts/ to render in."""
    tree = tmp_path_factory.mktemp("tree")
    for name in ("k8s", "charts"):
        shutil.copytree(ROOT / name, tree / name)
    return tree


@pytest.fixture(scope="session")
def base(tree: Path, helm: Path) -> Objects:
    """The chart for a GPU cluster, as k8s/render.sh renders it."""
    return render(tree, helm)


@pytest.fixture(scope="session")
def build(tree: Path, base: Objects, kubectl: Path) -> Callable[[str], Objects]:
    """Build an overlay over the rendered chart."""
    return lambda overlay: kustomize(tree, kubectl, overlay)


@pytest.fixture(scope="session")
def group_tree(tree: Path, base: Objects, helm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy of ``tree`` with the optimizers rendered as a LeaderWorkerSet."""
    copy = tmp_path_factory.mktemp("group") / "tree"
    shutil.copytree(tree, copy)
    render(copy, helm, "--set", "optimizer.gang.form=LeaderWorkerSet")
    return copy


def render(tree: Path, helm: Path, *arguments: str) -> Objects:
    """Render the chart for a GPU cluster to k8s/base/five.yaml and return its objects."""
    subprocess.run([tree / "k8s/render.sh", "-f", "charts/values-gpu-cluster.yaml", *arguments], check=True,
                   env={**os.environ, "HELM": str(helm)})
    return by_name((tree / "k8s/base/five.yaml").read_text())


def kustomize(tree: Path, kubectl: Path, overlay: str) -> Objects:
    """Return the objects of an overlay."""
    done = subprocess.run([kubectl, "kustomize", tree / "k8s/overlays" / overlay], check=True, text=True,
                          capture_output=True)
    assert not done.stderr, done.stderr  # deprecations
    return by_name(done.stdout)


def by_name(text: str) -> Objects:
    """Return objects by kind and name."""
    found = [o for o in yaml.safe_load_all(text) if o]
    result = {(o["kind"], o["metadata"]["name"]): o for o in found}
    assert len(result) == len(found), "two objects of one kind and name"
    return result
