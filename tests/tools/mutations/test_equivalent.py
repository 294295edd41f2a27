"""Recorded equivalent mutants: each still fits the code and has a reason."""

import ast
from pathlib import Path

import pytest

from tools.mutations.equivalent import EquivalentMutants

ROOT = Path(__file__).resolve().parents[3]


def statements(tree: ast.Module, text: str, definition: str) -> str:
    """Return the source of a definition with its decorators, of the whole file for "", with single blanks."""
    nodes: list[ast.AST] = [tree]
    for name in filter(None, definition.split(".")):
        nodes = [node for parent in nodes for node in getattr(parent, "body", [])
                 if getattr(node, "name", None) == name]
    parts = [part for node in nodes for part in (*getattr(node, "decorator_list", []), node)]
    found = ["@" * isinstance(part, ast.expr) + (ast.get_source_segment(text, part) or text) for part in parts]
    return " ".join(" ".join(found).split())


@pytest.mark.parametrize("key", EquivalentMutants().reasons, ids=lambda key: f"{Path(key[0]).name}:{key[1]}")
def test_recorded_mutant_fits_the_code(key: tuple[str, str, str, str]) -> None:
    file, definition, before, after = key
    text = (ROOT / file).read_text(encoding="utf-8")
    assert before in statements(ast.parse(text), text, definition) and after != before


def test_reason_is_required(tmp_path: Path) -> None:
    file = tmp_path / "equivalent.toml"
    entry = '[[mutant]]\nfile = "a.py"\ndefinition = ""\nbefore = "x = 1"\nafter = "x = 2"\n'
    file.write_text(entry + 'reason = " "\n')
    with pytest.raises(ValueError, match="reason is required"):
        EquivalentMutants(file)
    file.write_text(entry + 'reason = "unused"\n')
    assert EquivalentMutants(file).reason(("a.py", "", "x = 1", "x = 2")) == "unused"
    assert EquivalentMutants(file).reason(("a.py", "", "x = 1", "x = 3")) is None
    assert EquivalentMutants(tmp_path / "none.toml").reasons == {}
