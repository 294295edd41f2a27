"""Which keys of a run's configuration each service reads: ``python -m tools.config_reads`` writes it into the chart.

The chart's pods carry a checksum of their own part of the configuration (charts/files/reads.yaml), so that a key that
changes restarts those who read it and nobody else. It is found in the services' source: every chain of attributes that
begins at a ``config`` and follows the fields of RunConfig.
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
# What rapid.service reads for every service, and rapid.standalone_service for games, which have no store.
PLATFORM = ("name", "rpc", "store", "blobs", "telemetry", "allocator", "lifecycle")
STORELESS = ("name", "rpc", "telemetry", "allocator", "lifecycle")
# What run.effective compares with the run's record, for the controller.
BESIDE = {"controller": ("game", "model")}
KINDS = ("rollout", "dota_env", "inference", "optimizer", "controller", "opponents", "evaluator", "play")
# Under these names a service's code has a RunConfig.
CONFIGS = ("config", "file_config")
Keys = tuple[str, ...]


def model_at(path: Keys) -> type[BaseModel] | None:
    """The section at a path of RunConfig; None where there is a value or nothing."""
    at: object = RunConfig
    for key in path:
        at = at.model_fields[key].annotation if isinstance(at, type) and issubclass(at, BaseModel) else None
    return at if isinstance(at, type) and issubclass(at, BaseModel) else None


def method_reads(section: type[BaseModel], name: str) -> set[str] | None:
    """Fields that a method or property of a section reads; None where it has none of that name."""
    found = inspect.getattr_static(section, name, None)
    found = found.fget if isinstance(found, property) else found
    if not inspect.isfunction(found) or found.__module__.startswith("pydantic"):
        return None
    nodes = ast.walk(ast.parse(textwrap.dedent(inspect.getsource(found))))
    return {n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
            and n.value.id == "self" and n.attr in section.model_fields}


class _File:
    """The reads of one source file. Raises ValueError for a name that stands for two sections."""

    def __init__(self, tree: ast.AST) -> None:
        self.names: dict[str, Keys] = dict.fromkeys(CONFIGS, ())
        self.followed: set[int] = set()  # nodes of which an attribute is read, or that a name is given for
        self.found: set[Keys] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                self._assigned(node)
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                self._read(node)
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute | ast.Name) and id(node) not in self.followed:
                path = self.path(node) if isinstance(node.ctx, ast.Load) else None
                if path:  # handed on as a whole
                    self.found.add(path)

    def path(self, node: ast.expr) -> Keys | None:
        """The path in RunConfig of an expression, None where it is something else."""
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
                    if self.names.setdefault(name.id, path) != path:
                        raise ValueError(f"{name.id!r} is {'.'.join(self.names[name.id])} and {'.'.join(path)} in one "
                                         "file: give them two names, so that what is read can be told")
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
    """Keys that these source files read, as dotted paths."""
    return {".".join(path) for file in files for path in _File(ast.parse(file.read_text())).found}


def _expanded(path: str, without: frozenset[str]) -> Iterator[str]:
    """``path``, or where keys below it are left out the others below it."""
    if path in without:
        return
    if not any(left.startswith(f"{path}.") for left in without):
        yield path
        return
    section = model_at(tuple(path.split(".")))
    assert section is not None, path
    for key in section.model_fields:
        yield from _expanded(f"{path}.{key}", without)


def reads(kind: str) -> list[str]:
    """Keys that a service reads when it starts, each as a dotted path; a section stands for all below it. The
    autoscaler's, which the controller reads again as they change, are left out."""
    found = source_reads(sorted((ROOT / "services" / kind).rglob("*.py")))
    found |= {*(STORELESS if kind == "dota_env" else PLATFORM), *BESIDE.get(kind, ())}
    live: set[str] = set()
    if kind == "controller":
        at = "services.controller.autoscaler"
        section = model_at(tuple(at.split(".")))
        assert section is not None
        live = {f"{at}.{key}" for key in section.model_fields} - {f"{at}.{key}" for key in FIXED_KEYS}
        found = {p for p in found if not any(p == key or p.startswith(f"{key}.") for key in live)}
    found = {path for one in found for path in _expanded(one, frozenset(live))}
    return sorted(path for path in found if not any(path.startswith(f"{other}.") for other in found))


def text() -> str:
    """The contents of charts/files/reads.yaml: keys by component, as the chart calls it."""
    return ABOUT + yaml.safe_dump({kind.replace("_", "-"): reads(kind) for kind in KINDS}, sort_keys=False)


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the file, or with ``--check`` says that it is not current. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.config_reads", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the file is not current")
    if not parser.parse_args(argv).check:
        FILE.write_text(text())
        return 0
    if FILE.is_file() and FILE.read_text() == text():
        return 0
    print(f"{FILE} is not current: run python -m tools.config_reads", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
