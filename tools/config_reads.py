"""Generator of charts/files/reads.yaml, the configuration keys that each service reads.

    python -m tools.config_reads

The chart's pods carry a checksum of these keys, so that a changed key restarts the services that read it and no others.
The keys come from the services' source: every chain of attributes that begins at a ``config`` and follows the fields of
RunConfig.
"""

import argparse
import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml
from pydantic import BaseModel

from five.run.config import RunConfig
from five.services.controller.autoscaler.live_settings import FIXED_KEYS

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "charts/files/reads.yaml"
ABOUT = "# Written by `python -m tools.config_reads` from the services' source; a test checks it.\n"
# Keys that rapid.service reads for every service, and rapid.standalone_service for games, which have no store.
PLATFORM = ("name", "rpc", "store", "blobs", "telemetry", "tracing", "allocator", "lifecycle")
STORELESS = ("name", "rpc", "telemetry", "tracing", "allocator", "lifecycle")
# Sections that run.effective compares with the run's record, for the controller.
COMPARED = {"controller": ("game", "model")}
KINDS = ("rollout", "dota_env", "inference", "optimizer", "controller", "opponents", "evaluator", "play", "dotaservice")
STORELESS_KINDS = ("dota_env", "dotaservice")
# Names of a RunConfig in the services' code.
CONFIGS = ("config", "file_config")
Keys = tuple[str, ...]


def model_at(path: Keys) -> type[BaseModel] | None:
    """Return the section at a path of RunConfig; None for a value or an unknown path."""
    at: object = RunConfig
    for key in path:
        at = at.model_fields[key].annotation if isinstance(at, type) and issubclass(at, BaseModel) else None
    return at if isinstance(at, type) and issubclass(at, BaseModel) else None


def method_reads(section: type[BaseModel], name: str) -> set[str] | None:
    """Return the fields that a method or property of a section reads; None if the section has no such member."""
    found = inspect.getattr_static(section, name, None)
    found = found.fget if isinstance(found, property) else found
    if not inspect.isfunction(found) or found.__module__.startswith("pydantic"):
        return None
    nodes = ast.walk(ast.parse(textwrap.dedent(inspect.getsource(found))))
    return {n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
            and n.value.id == "self" and n.attr in section.model_fields}


class _File:
    """Keys that one source file reads. A function has its own names and sees those of the functions around it.

    Raises ValueError for a name of two sections in one function.
    """

    def __init__(self, tree: ast.AST) -> None:
        self.names: dict[str, Keys] = dict.fromkeys(CONFIGS, ())
        self.followed: set[int] = set()  # nodes whose attribute is read, or that are assigned to a name
        self.found: set[Keys] = set()
        self._scan(tree)

    def _scan(self, function: ast.AST) -> None:
        outer, nodes, inner = self.names, list[ast.AST](), list[ast.AST]()
        self.names, self._assigned_here = dict(outer), set[str]()
        pending = list(ast.iter_child_nodes(function))
        while pending:
            node = pending.pop()
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                inner.append(node)
            else:
                nodes.append(node)
                pending += ast.iter_child_nodes(node)
        for node in sorted((n for n in nodes if isinstance(n, ast.Assign)), key=lambda n: n.lineno):
            self._assigned(node)
        for node in nodes:
            if isinstance(node, ast.Attribute):
                self._read(node)
        for node in nodes:
            if isinstance(node, ast.Attribute | ast.Name) and id(node) not in self.followed:
                path = self.path(node) if isinstance(node.ctx, ast.Load) else None
                if path:  # passed on as a whole
                    self.found.add(path)
        for node in inner:
            self._scan(node)
        self.names = outer

    def path(self, node: ast.expr) -> Keys | None:
        """Return the path in RunConfig of an expression; None for another expression."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id)
        if not isinstance(node, ast.Attribute):
            return None
        if node.attr in CONFIGS:
            return ()
        above = self.path(node.value)
        section = None if above is None else model_at(above)
        return (*above, node.attr) if above is not None and section and node.attr in section.model_fields else None

    def _assigned(self, node: ast.Assign) -> None:
        for target in node.targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=False))
            for name, value in pairs:
                path = self.path(value)
                if path and isinstance(name, ast.Name) and model_at(path) is not None:
                    if name.id in self._assigned_here and self.names[name.id] != path:
                        raise ValueError(f"{name.id!r} is {'.'.join(self.names[name.id])} and {'.'.join(path)} in one "
                                         "function: use two names, so that the keys read can be told apart")
                    self.names[name.id] = path
                    self._assigned_here.add(name.id)
                    self.followed.add(id(value))

    def _read(self, node: ast.Attribute) -> None:
        above = self.path(node.value)
        section = None if above is None else model_at(above)
        if above is None or section is None:
            return
        if self.path(node) is not None:
            self.followed.add(id(node.value))
        elif (fields := method_reads(section, node.attr)) is not None:
            self.followed.add(id(node.value))
            self.found |= {(*above, field) for field in fields}


def source_reads(files: Sequence[Path]) -> set[str]:
    """Return the keys that source files read, as dotted paths."""
    return {".".join(path) for file in files for path in _File(ast.parse(file.read_text(encoding="utf-8"))).found}


def _expand(path: str, without: frozenset[str]) -> Iterator[str]:
    """Yield ``path`` if it is a key, otherwise the keys below it, except those of ``without``."""
    if path in without:
        return
    if not any(left.startswith(f"{path}.") for left in without):
        yield path
        return
    section = model_at(tuple(path.split(".")))
    assert section is not None, path
    for key in section.model_fields:
        yield from _expand(f"{path}.{key}", without)


def reads(kind: str) -> list[str]:
    """Return the keys that a service reads at its start, as dotted paths. A section stands for all keys below it.

    The autoscaler's keys are left out: the controller reads them again as they change.
    """
    found = source_reads(sorted((ROOT / "services" / kind).rglob("*.py")))
    found |= {*(STORELESS if kind in STORELESS_KINDS else PLATFORM), *COMPARED.get(kind, ())}
    live: set[str] = set()
    if kind == "controller":
        at = "services.controller.autoscaler"
        section = model_at(tuple(at.split(".")))
        assert section is not None
        live = {f"{at}.{key}" for key in section.model_fields} - {f"{at}.{key}" for key in FIXED_KEYS}
        found = {p for p in found if not any(p == key or p.startswith(f"{key}.") for key in live)}
    found = {path for one in found for path in _expand(one, frozenset(live))}
    return sorted(path for path in found if not any(path.startswith(f"{other}.") for other in found))


def text() -> str:
    """Return the contents of charts/files/reads.yaml: keys by the chart's name of a component."""
    return ABOUT + yaml.safe_dump({kind.replace("_", "-"): reads(kind) for kind in KINDS}, sort_keys=False)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the file, or report with ``--check`` that it is outdated. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.config_reads", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the file is outdated")
    if not parser.parse_args(argv).check:
        FILE.write_text(text(), encoding="utf-8")
        return 0
    if FILE.is_file() and FILE.read_text(encoding="utf-8") == text():
        return 0
    print(f"{FILE} is outdated: run python -m tools.config_reads", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
