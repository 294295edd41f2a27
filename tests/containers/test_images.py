"""Contents of the images."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.charts.commands import modules_by_image
from tests.charts.rendering import Values, variants
from tests.containers.engine import BASE, IMAGES, ROOT, docker, image, in_image, inspect

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1800), pytest.mark.usefixtures("built")]
TORCH = {"inference", "optimizer"}
# Megabytes above the base image. The client of object stores takes 16 of them, the export of traces 8.
SIZES = {"dota-env": 178, "dotaservice": 178, "rollout": 178, "opponents": 178, "evaluator": 178, "play": 178,
         "controller": 255}

IMPORTABLE = """
import importlib.util, sys
def found(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False
print(" ".join(name for name in sys.argv[1:] if found(name)))
"""


def build_tag(built: str) -> str:
    """Return the tag that the build gave its images besides `dev`."""
    (tag,) = set(re.findall(r"^building five/[a-z-]+:(\S+)$", built, re.M))
    return str(tag)


def size_above_base(service: str) -> float:
    """Return the size of an image above its base, in megabytes."""
    return (inspect(image(service))["Size"] - inspect(BASE)["Size"]) / 1e6


def test_sizes_are_printed_by_layer(built: str) -> None:
    for service in IMAGES:
        assert f"five/{service}:{build_tag(built)}: " in built
    assert built.count(f"MB  {BASE}") == len(IMAGES)
    assert "above its base" in built


@pytest.mark.parametrize("service", SIZES)
def test_an_image_without_torch_is_small(service: str) -> None:
    assert size_above_base(service) <= SIZES[service]


@pytest.mark.parametrize("service", IMAGES)
def test_image_has_needed_packages_and_torch_only_if_used(service: str) -> None:
    found = in_image(service, "python", "-c", IMPORTABLE, "torch", "trueskill", "fastapi", "pip", "nanobind", "numpy",
                     "grpc", "redis", "dota").split()
    assert ("torch" in found) == (service in TORCH)
    assert ("fastapi" in found) == (service == "controller")
    assert ("trueskill" in found) == (service in ("evaluator", "play"))
    assert {"numpy", "grpc", "redis", "dota"} <= set(found)
    assert not {"pip", "nanobind"} & set(found)


@pytest.mark.parametrize("service", IMAGES)
def test_a_service_starts_to_its_help_on_a_read_only_root(service: str) -> None:
    said = docker("run", "--rm", "--network", "none", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL",
                  image(service), "--help")
    assert "--config" in said


@pytest.mark.parametrize("service", IMAGES)
def test_modules_run_by_the_chart_are_in_the_image(service: str) -> None:
    values = [*variants(), Values("group", sets=("optimizer.replicas=2",))]
    modules = set().union(*(modules_by_image(each).get(service, set()) for each in values))
    modules.add(f"five.services.{service.replace('-', '_')}")
    found = in_image(service, "python", "-c", IMPORTABLE, *modules, options=["--workdir", "/tmp"]).split()
    assert set(found) == modules


@pytest.mark.parametrize("service", IMAGES)
def test_the_image_user_is_fixed_and_unprivileged(service: str) -> None:
    assert inspect(image(service))["Config"]["User"] == "10001:10001"
    assert in_image(service, "sh", "-c", "id -u; id -g").split() == ["10001", "10001"]
    # Nothing of the program can be changed by who runs it.
    assert in_image(service, "sh", "-c", "find /opt/five /usr /etc -writable ! -type l 2>/dev/null; echo looked"
                    ) == "looked\n"


@pytest.mark.parametrize("service", IMAGES)
def test_no_compiler_no_cache_no_source_of_the_core(service: str) -> None:
    for program in ("gcc", "g++", "cc", "c++", "cmake", "ninja", "make"):
        assert in_image(service, "sh", "-c", f"command -v {program} || true") == "", program
    # A build's mounts leave empty folders behind.
    left = in_image(service, "sh", "-c", "find /root/.cache /var/lib/apt/lists /src /wheels /requirements /opt/build "
                    "-type f 2>/dev/null; echo looked", options=["--user", "0"])
    assert left == "looked\n"
    assert in_image(service, "find", "/opt/five", "-name", "*.cpp", "-path", "*dota*") == ""


@pytest.mark.parametrize("service", IMAGES)
def test_labels_and_entry(built: str, service: str) -> None:
    config = inspect(image(service))["Config"]
    labels = config["Labels"]
    assert labels["org.opencontainers.image.title"] == f"five/{service}"
    assert labels["org.opencontainers.image.version"] == build_tag(built)
    assert inspect(f"five/{service}:{build_tag(built)}")["Id"] == inspect(image(service))["Id"]
    assert labels["org.opencontainers.image.base.name"] == BASE
    assert labels["org.opencontainers.image.description"]
    revision = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert labels["org.opencontainers.image.revision"] == (revision.stdout.strip() or "unknown")
    assert config["Entrypoint"][:2] == ["tini", "--"]
    assert config["Entrypoint"][-1] == f"five.services.{service.replace('-', '_')}"


def test_the_core_and_the_presets_are_in_the_wheel() -> None:
    said = in_image("rollout", "python", "-c", "import dota._core; from five.run.load import presets; "
                    "print(*sorted(presets()))", options=["--workdir", "/tmp"])
    assert said.split() == ["gpu-node", "laptop-1v1", "laptop-5v5", "rerun"]


def test_the_core_is_the_one_for_this_processor() -> None:
    said = in_image("rollout", "python", "-c", "import dota._core; from dota.processor import level; "
                    "print(level() or 'dota', dota._core.__file__)", options=["--workdir", "/tmp"])
    folder, file = said.split()
    assert Path(file).parent.name == folder


def test_a_game_plays_in_the_smallest_image() -> None:
    said = in_image("dota-env", "python", "-c", "from five.run.load import load; from dota.vec_game import VecGame; "
                    "print(VecGame(load('laptop-1v1').game, 2, 1, 1) is not None)")
    assert said.strip() == "True"


def test_torch_computes_in_its_images() -> None:
    assert in_image("optimizer", "python", "-c", "import torch; print(float(torch.ones(3) @ torch.ones(3)))") == "3.0\n"


def test_byte_code_is_in_the_image() -> None:
    missing = in_image("dota-env", "python", "-c", "import dota.spaces, pathlib, importlib.util as u; "
                       "print(pathlib.Path(u.cache_from_source(dota.spaces.__file__)).exists())")
    assert missing.strip() == "True"
