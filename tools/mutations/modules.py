"""Modules under mutation testing: their source files, candidate tests and own tests, read from modules.toml."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODULES_FILE = Path(__file__).parent / "modules.toml"


class ModulesError(Exception):
    """Something in modules.toml or in the selection does not exist."""


@dataclass(frozen=True, slots=True)
class Target:
    """A source file under test. Paths are relative to the root of the tree."""

    module: str
    source: str
    own_test: str | None
    tests: tuple[str, ...]
    siblings: tuple[str, ...]
    """All source files of the module."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The targets to test, libraries that test processes import once, and the pytest plugins that they load."""

    targets: list[Target]
    preload: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()


def load_selection(root: Path, names: list[str], modules_file: Path = MODULES_FILE) -> Selection:
    """Return the targets of the named modules and source files, all modules without a name.

    Raise ModulesError for a name that is neither a module nor a source file of one.
    """
    document = tomllib.loads(modules_file.read_text(encoding="utf-8"))
    own = document.get("own", {})
    targets = {name: list(_targets(root, name, module, own)) for name, module in document["modules"].items()}
    selected: dict[str, Target] = {}
    for name in names or list(targets):
        found = targets.get(name) or [target for module in targets.values() for target in module
                                      if target.source == name or target.source.startswith(f"{name.rstrip('/')}/")]
        if not found:
            raise ModulesError(f"module {name!r}: only {', '.join(targets)} and their source files are allowed")
        selected |= {target.source: target for target in found}
    return Selection(list(selected.values()), tuple(document.get("preload", ())), tuple(document.get("plugins", ())))


def _targets(root: Path, name: str, module: dict[str, Any], own: dict[str, str]) -> list[Target]:
    tests = sorted({_relative(root, path) for pattern in module["tests"] for path in root.glob(pattern)
                    if path.name.startswith("test_")})
    sources = [_relative(root, path) for listed in module["files"] for path in _sources(root / listed)]
    sources = [source for source in sources if source not in module.get("excluded", {})]
    return [Target(name, source, own.get(source) or _own_test(source, tests), tuple(tests), tuple(sources))
            for source in sources]


def _sources(listed: Path) -> list[Path]:
    if listed.is_dir():
        return sorted(path for path in listed.rglob("*.py") if path.name not in ("__init__.py", "__main__.py"))
    if not listed.is_file():
        raise ModulesError(f"modules.toml: {listed} does not exist")
    return [listed]


def _own_test(source: str, tests: list[str]) -> str | None:
    """Return the test file called after the source file, alone or with its folders before it."""
    path = Path(source)
    names = [f"test_{path.stem}.py", f"test_{path.parent.name}_{path.stem}.py"]
    return next((test for name in names for test in tests if Path(test).name == name), None)


def _relative(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()
