"""Package requirements of each image, read from pyproject.toml. lock.py pins them. torch is excluded: its flavour (CPU,
CUDA) is a build argument."""

import tomllib

EXTRAS = ("platform", "tracing", "agent", "rating", "control")


def requirements(pyproject: str) -> dict[str, list[str]]:
    """Return requirements by extra from the text of a pyproject.toml; ``platform`` includes the base dependencies and
    ``tracing``. Raises KeyError for a missing extra."""
    project = tomllib.loads(pyproject)["project"]
    extras: dict[str, list[str]] = {name: project["optional-dependencies"][name] for name in EXTRAS}
    extras["platform"] = [*project["dependencies"], *extras["platform"], *extras.pop("tracing")]
    return {name: [line for line in lines if not line.startswith("torch")] for name, lines in extras.items()}
