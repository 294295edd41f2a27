"""Numbers that an earlier release stored and this one no longer allows: replaced by the nearest allowed number."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from five.run.config import RunConfig
from five.run.renamed_keys import copy_tree

_INCLUSIVE = {"less_than_equal": ("le", "at most"), "greater_than_equal": ("ge", "at least")}
_PASSES = 3  # a number that is moved to one bound may miss another
# Keys of which another number would be another network, or other actions. They are refused instead.
EXACT = ("model", "game.offset_cell")


def move_to_bounds(tree: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return a copy of a stored configuration with every number beyond its bounds moved to the bound, and a line for
    each. `EXACT` keys, and values that are wrong in another way, stay for the validation.
    """
    result, lines = copy_tree(tree), list[str]()
    for _ in range(_PASSES):
        try:
            RunConfig.model_validate(result)
            break
        except ValidationError as error:
            moved = [line for problem in error.errors() if (line := _move(result, dict(problem)))]
        lines += moved
        if not moved:
            break
    return result, lines


def _move(tree: dict[str, Any], problem: Mapping[str, Any]) -> str:
    """Move the number of one problem to its bound. Return the line; '' if it stays."""
    path = ".".join(map(str, problem["loc"]))
    if problem["type"] not in _INCLUSIVE or any(f"{path}.".startswith(f"{key}.") for key in EXACT):
        return ""
    name, words = _INCLUSIVE[problem["type"]]
    *sections, key = problem["loc"]
    node: Any = tree
    for section in sections:
        node = node[section]
    old = node[key]
    node[key] = type(old)(problem["ctx"][name])
    return f"{path} {old}: {words} {node[key]} is allowed, which replaces it"
