"""Writes what each image installs, from pyproject.toml: a file an extra, a line a requirement.

``python requirements.py pyproject.toml FOLDER``. ``platform.txt`` has the dependencies of every part too. torch is left
out: its flavour (CPU, CUDA) is an argument of the build.
"""

import sys
import tomllib
from pathlib import Path

EXTRAS = ("platform", "agent", "rating", "control")


def requirements(pyproject: str) -> dict[str, list[str]]:
    """Requirements by extra, from the text of a pyproject.toml. Raises KeyError for an extra that is not there."""
    project = tomllib.loads(pyproject)["project"]
    extras: dict[str, list[str]] = {name: project["optional-dependencies"][name] for name in EXTRAS}
    extras["platform"] = [*project["dependencies"], *extras["platform"]]
    return {name: [line for line in lines if not line.startswith("torch")] for name, lines in extras.items()}


if __name__ == "__main__":
    source, folder = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for extra, lines in requirements(source.read_text()).items():
        (folder / f"{extra}.txt").write_text("".join(f"{line}\n" for line in lines))
