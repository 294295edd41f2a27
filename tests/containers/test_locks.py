"""Packages in the images are pinned with hashes, and the pins match the project's requirements."""

import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "deploy/images"
PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", re.M)


@pytest.fixture(scope="module")
def lock() -> ModuleType:
    """Load deploy/images/lock.py, which is not in a package."""
    sys.path.insert(0, str(IMAGES))
    try:
        spec = importlib.util.spec_from_file_location("lock", IMAGES / "lock.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(IMAGES))


def pins(layer: str) -> dict[str, str]:
    """Return the version of each package. Every line of the file is part of a pin with hashes, or a comment."""
    text = (IMAGES / f"locks/{layer}.txt").read_text()
    found = {name: version for name, version, _ in PIN.findall(text)}
    rest = PIN.sub("", text)
    assert not [line for line in rest.splitlines() if line and not line.startswith("#")], layer
    return found


def test_the_pins_match_the_requirements(lock: ModuleType) -> None:
    layers = lock.layers((ROOT / "pyproject.toml").read_text())
    assert {path.stem for path in (IMAGES / "locks").iterdir()} == set(layers)
    for layer, lines in layers.items():
        text = (IMAGES / f"locks/{layer}.txt").read_text()
        assert f"{lock.OF}{lock.digest(lines)}\n" in text, f"{layer}: run python deploy/images/lock.py"


def test_every_requirement_is_pinned_within_its_bounds(lock: ModuleType) -> None:
    below = pins("platform")
    for layer, lines in lock.layers((ROOT / "pyproject.toml").read_text()).items():
        found = {**({} if layer in ("build", "console") else below), **pins(layer)}
        assert not pins(layer).keys() & below.keys() or layer in ("platform", "build"), "a layer repeats nothing"
        for line in lines:
            asked = Requirement(line)
            if asked.name != "torch" or layer.startswith("torch"):
                assert asked.specifier.contains(found[asked.name.lower()]), line


def test_another_requirement_is_found(lock: ModuleType) -> None:
    text = (ROOT / "pyproject.toml").read_text()
    other = lock.layers(text.replace('"redis>=8"', '"redis>=9"'))
    assert lock.digest(other["platform"]) != lock.digest(lock.layers(text)["platform"])


def test_build_pins_match_makefile_versions(lock: ModuleType) -> None:
    makefile, dockerfile = (ROOT / "Makefile").read_text(), (ROOT / "Dockerfile").read_text()
    setup = (ROOT / "tools/locks/setup.txt").read_text()
    assert all(f"\n{name}=={version} " in setup for name, version in pins("build").items())
    assert set(tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]) <= set(lock.BUILD)
    assert "--require-hashes -r ../deploy/images/locks/console.txt" in (ROOT / "console/build.sh").read_text()
    assert f"TORCH ?= {lock.TORCH}\n" in makefile and f"ARG TORCH_INDEX={lock.CPU_INDEX}\n" in dockerfile


def test_each_flavour_of_torch_is_pinned_with_what_it_needs() -> None:
    both = {**pins("platform"), **pins("agent")}
    assert {"filelock", "sympy", "networkx", "jinja2", "typing-extensions", "fsspec"} <= both.keys()
    assert not [name for name in both if name.startswith(("torch", "nvidia", "cuda", "triton"))]
    assert pins("torch-cpu") == {"torch": "2.13.0+cpu"}
    cuda = pins("torch-cuda")
    assert cuda["torch"] == "2.13.0" and {"triton", "nvidia-cublas", "nvidia-cudnn-cu13", "cuda-toolkit"} <= cuda.keys()
    assert all(name == "torch" or name.startswith(("nvidia-", "cuda-", "triton")) for name in cuda)


def test_images_install_by_hash_alone() -> None:
    """Except the project's own wheel."""
    dockerfile = (ROOT / "Dockerfile").read_text()
    installs = re.findall(r"^.*?\bpip --python \S+ install (.*?)(?= \\?$|$)", dockerfile, re.M)
    assert len(installs) == 11
    for options in installs:
        assert "--no-deps --require-hashes -r /locks/" in options or "/wheels/*.whl" in options, options
    locks = set(re.findall(r"-r /locks/([\w-]+)\.txt", dockerfile.replace("${FLAVOUR}", "cpu")))
    assert locks | {"torch-cuda"} == {path.stem for path in (IMAGES / "locks").iterdir()}
    assert "ARG FLAVOUR=cpu\n" in dockerfile
