"""Functions of the project that decode bytes or text, found in its source by the calls that they make."""

import ast
from collections.abc import Iterator

from tests.repository import ROOT

FOLDERS = {"libs/rapid": "rapid", "libs/dota": "dota", "libs/five": "five", "services": "five/services"}
# Methods that turn bytes or text into values.
CALLS = frozenset({
    "loads", "frombuffer", "unpack", "unpack_from", "FromString", "ParseFromString", "MergeFromString", "decompress",
    "from_bytes", "model_validate_json", "validate_json", "parse_yaml", "safe_load", "get_single_data", "ZipFile",
    "decompressobj", "b64decode", "fromhex", "fromiso", "from_json", "from_yaml", "decode_bytes", "parse_header",
    "read_header", "decode_row", "read_json"})


def _calls(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if isinstance(child, ast.Call):
            function = child.func
            yield function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        yield from _calls(child)


def _functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}{child.name}"
            if not isinstance(child, ast.ClassDef):
                yield name, child
            yield from _functions(child, f"{name}.")
        else:
            yield from _functions(child, prefix)


def find_decoders() -> dict[str, set[str]]:
    """Return the decoding calls of each function that makes any, by ``path:qualified name``."""
    found: dict[str, set[str]] = {}
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            inner = path.relative_to(ROOT / folder).as_posix()
            if path.name.endswith(("_pb2.py", "_pb2_grpc.py")) or (folder == "libs/five" and inner.startswith(
                    ("services/", "protos/"))):
                continue
            text = path.read_text(encoding="utf-8")
            if not any(call in text for call in CALLS):
                continue
            for name, node in _functions(ast.parse(text)):
                if calls := CALLS.intersection(_calls(node)):
                    found[f"{package}/{inner}:{name}"] = calls
    return found
