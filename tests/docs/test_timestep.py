"""docs/timestep.md: each of its functions is in its file, and the others that it names are somewhere."""

import ast
import re
from pathlib import Path

import pytest

from tests.repository import ROOT, sources

PAGE = (ROOT / "docs/timestep.md").read_text()
ROWS = re.findall(r"^\| (\d+) \| `([\w.]+)` \| (.*) \| `([\w./]+)` \|$", PAGE, re.M)


def defined(path: Path) -> set[str]:
    """Functions of a module, methods as Class.method; of a C++ file, what is defined at the beginning of a line."""
    if path.suffix == ".cpp":
        found = re.findall(r"^[A-Za-z][\w:<>&* ,]*?\b((?:\w+::)?\w+)\(", path.read_text(), re.M)
        return {name.replace("::", ".") for name in found}
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = [n for n in node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
            names |= {f"{node.name}.{method.name}" for method in methods}
    return names


def test_it_has_ten_rows() -> None:
    assert [int(number) for number, *_ in ROWS] == list(range(1, 11))


@pytest.mark.parametrize(("function", "file"), [(row[1], row[3]) for row in ROWS])
def test_each_function_is_in_its_file(function: str, file: str) -> None:
    assert function in defined(ROOT / file)


def test_what_else_it_names_is_in_the_code() -> None:
    everything = {name for path in sources(".py", ".cpp") if path.is_relative_to(ROOT / "libs") or
                  path.is_relative_to(ROOT / "services") for name in defined(path)}
    structs = {m for path in sources(".hpp") for m in re.findall(r"^(?:struct|class) (\w+)", path.read_text(), re.M)}
    for _, _, data, _ in ROWS:
        for name in re.findall(r"`([A-Za-z][\w.]+)`", data):
            assert name in everything | structs, name
    assert "gone" not in everything
