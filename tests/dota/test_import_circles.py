"""The game's package has no circular imports, including those in functions or for types."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import dota

PACKAGE = Path(dota.__file__).parent


def imports(source: str, known: set[str]) -> set[str]:
    """Return the modules of ``known`` (names below ``dota``) that ``source`` imports anywhere."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "dota":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dota."):
            found.add((node.module or "").removeprefix("dota."))
        elif isinstance(node, ast.Import):
            found |= {alias.name.removeprefix("dota.") for alias in node.names}
    return found & known


def test_the_package_has_no_import_circle() -> None:
    modules = {path.stem: path.read_text() for path in PACKAGE.glob("*.py") if path.stem != "__init__"}
    graph = {name: imports(source, set(modules)) for name, source in modules.items()}
    assert "replay" in graph["playback"] and "vec_game" in graph["playback"]
    TopologicalSorter(graph).prepare()  # raises CycleError naming the circle


def test_a_circle_for_a_type_or_in_a_function_is_seen() -> None:
    one = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from dota.b import B\n"
    other = "def f():\n    from dota import a\n"
    graph = {"a": imports(one, {"a", "b"}), "b": imports(other, {"a", "b"})}
    with pytest.raises(CycleError):
        TopologicalSorter(graph).prepare()
