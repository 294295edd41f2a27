"""Code whose mutants are skipped: it says something to people or to the type checker, and tests do not pin that.

Skipped are log messages, docstrings, texts of errors and assertions, printed text, examples of an API's document, type
annotations and aliases, ``__repr__`` and ``__str__``, protocols, code for the type checker and for the command line of
a file, options of dataclasses that forbid use, ``strict`` of zip, and ``classmethod`` of pydantic's validators.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

LOG_METHODS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
DECLARATIONS = {"abstractmethod", "override", "overload", "final", "runtime_checkable"}
DATACLASS_OPTIONS = {"frozen", "slots", "kw_only", "repr"}
VALIDATORS = {"field_validator", "model_validator"}
DISPLAY_METHODS = {"__repr__", "__str__"}

Position = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Span:
    """Part of a file from ``start`` to ``end``: lines from 1 and columns from 0, in characters."""

    start: Position
    end: Position

    def contains(self, position: Position) -> bool:
        return self.start <= position < self.end


def skipped_spans(source: str) -> list[Span]:
    """Return the parts of a Python source text whose mutants are skipped."""
    lines = source.splitlines(keepends=True)
    tree = ast.parse(source)
    skipped = [node for parent in ast.walk(tree) for node in _skipped_nodes(parent)]
    skipped += [node.value for node in tree.body if isinstance(node, ast.Assign) and _is_type(node.value)]
    skipped += _examples(tree)
    return [Span(_position(lines, node.lineno, node.col_offset),
                 _position(lines, node.end_lineno or node.lineno, node.end_col_offset or 0)) for node in skipped]


def _skipped_nodes(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            if node.name in DISPLAY_METHODS:
                yield node
            if node.returns:
                yield node.returns
            yield from (decorator for decorator in node.decorator_list if _name(decorator) in DECLARATIONS)
            if any(isinstance(decorator, ast.Call) and _name(decorator.func) in VALIDATORS
                   for decorator in node.decorator_list):  # pydantic makes a class method of it
                yield from (decorator for decorator in node.decorator_list if _name(decorator) == "classmethod")
        case ast.ClassDef(bases=bases) if any(_name(base) == "Protocol" for base in bases):
            yield node
        case ast.ClassDef():
            yield from (decorator for decorator in node.decorator_list if _name(decorator) in DECLARATIONS)
            yield from (keyword.value for decorator in node.decorator_list if isinstance(decorator, ast.Call)
                        if _name(decorator.func) == "dataclass" for keyword in decorator.keywords
                        if keyword.arg in DATACLASS_OPTIONS)
        case ast.arg(annotation=ast.expr() as annotation) | ast.AnnAssign(annotation=annotation):
            yield annotation
        case ast.Raise(exc=ast.Call() as error):
            yield from (argument for argument in [*error.args, *(keyword.value for keyword in error.keywords)]
                        if _has_text(argument))
        case ast.Assert(msg=ast.expr() as message):
            yield message
        case ast.If(test=test) if _name(test) == "TYPE_CHECKING" or _is_main(test):
            yield node
        case ast.Call():
            if _is_log(node.func) or _name(node.func) == "print":
                yield node
            if _name(node.func) == "cast" and node.args:
                yield node.args[0]
            yield from (keyword.value for keyword in node.keywords
                        if _name(node.func) == "zip" and keyword.arg == "strict")


def _examples(tree: ast.Module) -> list[ast.expr]:
    """Return the examples of an API's document, and the values of constants that only examples use."""
    found = [value for node in ast.walk(tree) for value in _examples_of(node)]
    constants = {_name(target): node.value for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)
                 for target in (node.targets if isinstance(node, ast.Assign) else [node.target]) if node.value}
    while True:
        uses = [name for example in found for name in _names_in(example)]
        others = [name for name in _names_in(tree) if name in constants]
        more = [value for name, value in constants.items()
                if 0 < others.count(name) == uses.count(name) and value not in found]
        if not more:
            return found
        found += more


def _examples_of(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.Call():
            yield from (keyword.value for keyword in node.keywords if keyword.arg == "json_schema_extra")
        case ast.Dict():
            yield from (value for key, value in zip(node.keys, node.values, strict=True)
                        if isinstance(key, ast.Constant) and key.value == "example")


def _names_in(node: ast.AST) -> Iterator[str]:
    return (inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load))


def _name(node: ast.expr) -> str:
    """Return the last part of a name such as ``abc.abstractmethod``, empty for other expressions."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_log(function: ast.expr) -> bool:
    return (isinstance(function, ast.Attribute) and function.attr in LOG_METHODS
            and _name(function.value).lower().lstrip("_") in ("log", "logger", "logging"))


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and _name(test.left) == "__name__"


def _is_type(value: ast.expr) -> bool:
    """Return whether the value is a union of types, written as ``A | B``."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr):
        return all(isinstance(side, ast.Name | ast.Attribute | ast.Subscript) or _is_type(side)
                   or (isinstance(side, ast.Constant) and not isinstance(side.value, int))
                   for side in (value.left, value.right))
    return False


def _has_text(argument: ast.expr) -> bool:
    return any(isinstance(part, ast.JoinedStr) or (isinstance(part, ast.Constant) and isinstance(part.value, str))
               for part in ast.walk(argument))


def _position(lines: list[str], line: int, column: int) -> Position:
    """Convert ast's column, which counts bytes of UTF-8, into one that counts characters."""
    return line, len(lines[line - 1].encode()[:column].decode(errors="ignore"))
