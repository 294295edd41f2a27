"""docs/timestep.md: its functions and classes are in their files, and the other names exist in the code."""

import ast
import re
from pathlib import Path

import pytest

from tests.repository import ROOT, sources

PAGE = (ROOT / "docs/timestep.md").read_text()
CALLS = re.findall(r"^\| (\d+) \| `([\w.]+)` \| (.*) \| `([\w./]+)` \|$", PAGE, re.M)
REPRESENTATIONS = re.findall(r"^\| `(\w+)` \| (.*) \| `([\w.]+)` \| `([\w./]+)` \|$", PAGE, re.M)


def defined(path: Path) -> set[str]:
    """Return a module's functions and classes, methods as Class.method; of C++, definitions at a line's start."""
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


def test_page_has_ten_calls_and_six_representations() -> None:
    assert [int(number) for number, *_ in CALLS] == list(range(1, 11)) and len(REPRESENTATIONS) == 6


@pytest.mark.parametrize(("name", "file"), [(row[1], row[3]) for row in CALLS] + [
    (row[0], row[3]) for row in REPRESENTATIONS])
def test_name_is_defined_in_its_file(name: str, file: str) -> None:
    assert name in defined(ROOT / file)


def test_other_names_exist_in_the_code() -> None:
    everything = {name for path in sources(".py", ".cpp") if path.is_relative_to(ROOT / "libs") or
                  path.is_relative_to(ROOT / "services") for name in defined(path)}
    structs = {m for path in sources(".hpp") for m in re.findall(r"^(?:struct|class) (\w+)", path.read_text(), re.M)}
    messages = {m for path in sources(".proto") for m in re.findall(r"^message (\w+)", path.read_text(), re.M)}
    names = {row[2] for row in REPRESENTATIONS}
    for text in [row[2] for row in CALLS] + [row[1] for row in REPRESENTATIONS]:
        names |= set(re.findall(r"`([A-Za-z][\w.]+)`", text))
    assert names - everything - structs - messages == set()
