"""Mutants of a source file, made by cosmic-ray's operators, and a random sample of them."""

import ast
import difflib
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator

from tools.mutations.skip_rules import skipped_spans

# Replacements that a programmer could have written. The others, such as a shift of floats, fail on any execution.
ARITHMETIC = {"Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Div", "FloorDiv_Mul", "Mod_Mul", "Mod_FloorDiv",
              "Pow_Mul", "BitOr_BitAnd", "BitAnd_BitOr", "BitXor_BitOr", "LShift_RShift", "RShift_LShift"}
COMPARISONS = {"Eq", "NotEq", "Lt", "LtE", "Gt", "GtE"}
UNARY = {"Delete_Not", "Delete_USub", "Delete_Invert"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A source file with one change.

    ``before`` and ``after`` are the changed lines without repeated blanks; with ``definition``, the function or class
    around them, they identify a mutant when other parts of the file change.
    """

    source: str
    line: int
    definition: str
    operator: str
    before: str
    after: str
    text: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.source, self.definition, self.before, self.after


@dataclass(frozen=True, slots=True)
class _Place:
    """A place where an operator applies; ``occurrence`` counts the operator's places in the file."""

    operator: str
    occurrence: int
    line: int
    column: int


@cache
def _operators() -> dict[str, type[Operator]]:
    """Return cosmic-ray's operators by name, without those that need arguments and implausible replacements."""
    found = {name: plugins.get_operator(name) for name in plugins.operator_names()}
    return {name: operator for name, operator in found.items()
            if not operator.arguments() and _is_plausible(name.removeprefix("core/"))}


def _is_plausible(name: str) -> bool:
    kind, _, replacement = name.partition("_")
    match kind:
        case "ReplaceBinaryOperator":
            return replacement in ARITHMETIC
        case "ReplaceUnaryOperator":
            return replacement in UNARY
        case "ReplaceComparisonOperator":
            return replacement in ("Is_IsNot", "IsNot_Is") or set(replacement.split("_")) <= COMPARISONS
        case _:
            return kind != "NoOp"


def sample_mutants(source: str, text: str, count: int | None, seed: int) -> list[Mutant]:
    """Return ``count`` random mutants of a file with that text, all of them without a count.

    Each place of the code is equally likely, however many operators apply there: without that half of all mutants
    would replace arithmetic operators. A second mutant of a place is taken when every place has one.
    """
    places: dict[tuple[int, int], list[_Place]] = defaultdict(list)
    for place in _places(text):
        places[place.line, place.column].append(place)
    rng = random.Random(f"{seed} {source}")
    groups = list(places.values())
    rng.shuffle(groups)
    for group in groups:
        rng.shuffle(group)
    rounds = max((len(group) for group in groups), default=0)
    ordered = (group[turn] for turn in range(rounds) for group in groups if turn < len(group))
    found: dict[tuple[int, str], Mutant] = {}
    for place in ordered:
        if count is not None and len(found) >= count:
            break
        mutant = _mutant(source, text, place)
        if mutant:
            found.setdefault((mutant.line, mutant.text), mutant)
    return sorted(found.values(), key=lambda mutant: (mutant.line, mutant.after))


def _places(text: str) -> Iterator[_Place]:
    """Find every place where an operator applies, except those that the rules skip."""
    skipped = skipped_spans(text)
    nodes = list(ast_nodes(get_ast(text)))
    for name, operator_class in _operators().items():
        operator = operator_class()
        positions = (start for node in nodes for start, _ in operator.mutation_positions(node))
        for occurrence, start in enumerate(positions):
            if not any(span.contains(start) for span in skipped):
                yield _Place(name, occurrence, *start)


def _mutant(source: str, text: str, place: _Place) -> Mutant | None:
    """Make a mutant. Return None if it is invalid Python or means the same as the original."""
    try:
        mutated = mutate_code(text, _operators()[place.operator](), place.occurrence)
    except AttributeError:  # cosmic-ray replaces no dotted name in a tuple of exceptions
        return None
    if mutated is None:
        return None
    try:
        if ast.dump(ast.parse(mutated)) == ast.dump(ast.parse(text)):
            return None
    except (SyntaxError, ValueError):
        return None
    changes = [line for line in difflib.ndiff(text.splitlines(), mutated.splitlines()) if line[0] in "-+"]
    before, after = (" ".join(" ".join(line[1:] for line in changes if line[0] == sign).split()) for sign in "-+")
    return Mutant(source, place.line, definition_at(text, place.line), place.operator.removeprefix("core/"), before,
                  after, mutated)


def definition_at(text: str, line: int) -> str:
    """Return the dotted name of the function or class at a line, empty outside of both."""
    names: list[str] = []
    body: list[ast.stmt] = ast.parse(text).body
    while True:
        inner = next((node for node in body
                      if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
                      and _first_line(node) <= line <= (node.end_lineno or node.lineno)), None)
        if inner is None:
            return ".".join(names)
        names.append(inner.name)
        body = inner.body


def _first_line(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
