"""What each image asks for, from pyproject.toml; lock.py pins it. torch is left out: its flavour (CPU, CUDA) is an
argument of the build.
"""

import tomllib

EXTRAS = ("platform", "agent", "rating", "control")


def requirements(pyproject: str) -> dict[str, list[str]]:
    """Requirements by extra, from the text of a pyproject.toml; ``platform`` has the dependencies of every part too.
    Raises KeyError for an extra that is not there."""
    project = tomllib.loads(pyproject)["project"]
    extras: dict[str, list[str]] = {name: project["optional-dependencies"][name] for name in EXTRAS}
    extras["platform"] = [*project["dependencies"], *extras["platform"]]
    return {name: [line for line in lines if not line.startswith("torch")] for name, lines in extras.items()}
