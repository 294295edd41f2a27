"""The scripts of k8s/ parse, report missing tools, and run their steps in order."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "k8s").rglob("*.sh"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.name)
def test_parses(script: Path) -> None:
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", script], check=True)
    if shellcheck := shutil.which("shellcheck"):
        done = subprocess.run([shellcheck, script], text=True, capture_output=True)
        assert done.returncode == 0, done.stdout


class Machine:
    """Environment whose docker, kind, kubectl, helm and make only record their arguments."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.tree = folder / "tree"
        shutil.copytree(ROOT / "k8s", self.tree / "k8s")
        for name in ("docker", "kind", "kubectl"):
            self.tool(name, "")
        self.tool("make", '[[ "$*" == *image-tag ]] && echo 0.2.0-dev.g1; true')
        self.tool("helm", 'case $1 in template) printf "image: five/rollout:1\\n- image: \\"redis:7\\"\\n";; esac')

    def tool(self, name: str, body: str) -> None:
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'#!/bin/bash\necho "{name} $*" >> {self.log}\n{body}\n')
        path.chmod(0o755)

    def run(self, script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        for name in ("bash", "sed", "sort", "grep", "dirname", "tail", "env", "rm", "mkdir", "mv"):
            link = self.folder / "bin" / name
            if not link.exists():
                link.symlink_to(shutil.which(name) or pytest.fail(f"{name} is missing"))
        return subprocess.run([str(self.folder / "bin/bash"), self.tree / script, *arguments], text=True,
                              capture_output=True, env={"PATH": str(self.folder / "bin"), "HOME": str(self.folder),
                                                        **environment})

    def said(self) -> list[str]:
        return self.log.read_text().splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_up_builds_loads_and_installs(machine: Machine) -> None:
    done = machine.run("k8s/kind/up.sh", "--set", "a=b")
    assert done.returncode == 0, done.stderr
    said = machine.said()
    order = [next(i for i, line in enumerate(said) if line.startswith(start)) for start in (
        "make --no-print-directory images", "kind create cluster --name five",
        "kind load docker-image --name five five/r", "kind load docker-image --name five redis:7",
        "kubectl --context kind-five apply -f k8s/priority-classes.yaml",
        "helm upgrade --install five charts --kube-context kind-five --namespace five")]
    assert order == sorted(order)
    assert "--set-string global.image.tag=0.2.0-dev.g1 --set a=b" in said[order[-1]]


def test_up_again_keeps_the_cluster(machine: Machine) -> None:
    machine.tool("kind", '[ "$1 $2" = "get clusters" ] && echo five; true')
    assert machine.run("k8s/kind/up.sh").returncode == 0
    assert not any(line.startswith("kind create") for line in machine.said())


def test_up_without_a_build_uses_the_images_of_the_values(machine: Machine) -> None:
    assert machine.run("k8s/kind/up.sh", BUILD="0").returncode == 0
    assert "image.tag" not in machine.log.read_text() and "make" not in machine.log.read_text()


@pytest.mark.parametrize("tool", ["docker", "kind", "kubectl", "helm"])
def test_up_names_the_missing_tool(machine: Machine, tool: str) -> None:
    (machine.folder / "bin" / tool).unlink()
    done = machine.run("k8s/kind/up.sh")
    assert done.returncode == 1 and f"up.sh: {tool} is needed: https://" in done.stderr
    assert not machine.log.exists()


def test_up_names_the_image_that_cannot_be_had(machine: Machine) -> None:
    machine.tool("docker", '[[ "$*" != *redis* ]]')
    done = machine.run("k8s/kind/up.sh")
    assert done.returncode == 1 and "image redis:7 is neither on this machine" in done.stderr
    assert not any("create cluster" in line for line in machine.said())


def test_up_shows_pods_and_events_of_a_failed_install(machine: Machine) -> None:
    machine.tool("helm", '[ "$1" = template ] && { echo "image: a"; exit; }; exit 1')
    machine.tool("kubectl", '[[ "$*" == *"get pods"* ]] && echo "five-rollout-0 CrashLoopBackOff"; true')
    done = machine.run("k8s/kind/up.sh")
    assert done.returncode == 1
    assert "five-rollout-0 CrashLoopBackOff" in done.stderr and "did not become ready within 10m" in done.stderr


def test_render_leaves_the_last_one_when_the_chart_is_refused(machine: Machine) -> None:
    kept = machine.tree / "k8s/base/five.yaml"
    kept.write_text("kind: Old\n")
    machine.tool("helm", "exit 1")
    assert machine.run("k8s/render.sh").returncode == 1
    assert kept.read_text() == "kind: Old\n" and [p.name for p in kept.parent.glob(".five*")] == []
    machine.tool("helm", "echo kind: New")
    assert machine.run("k8s/render.sh").returncode == 0
    assert kept.read_text() == "kind: New\n"

