"""The game core and the agent's native code stay apart: neither includes, links or exposes the other."""

import re
from pathlib import Path

import pytest

from five.native import _native
from tests.repository import ROOT

GAME, NATIVE = ROOT / "libs/dota/core", ROOT / "libs/five/native/core"


def includes(folder: Path) -> set[str]:
    """Return the quoted includes of a folder's C++ sources."""
    return {name for source in folder.rglob("*.[ch]pp")
            for name in re.findall(r'^#include "(.+)"', source.read_text(), re.M)}


def test_native_code_includes_only_its_own_headers() -> None:
    assert includes(NATIVE)
    assert [name for name in includes(NATIVE) if not (NATIVE / name).is_file()] == []


def test_the_game_core_includes_only_its_own_headers() -> None:
    assert {name for name in includes(GAME) if not (GAME / name).is_file()} == {"core_sources.hpp"}, \
        "only the generated fingerprint may be outside the core"


def test_the_game_core_has_no_network_code() -> None:
    core = pytest.importorskip("dota._core", exc_type=ImportError)
    shared = {name for name in dir(core) if not name.startswith("__")} & set(dir(_native))
    assert shared == {"INTERFACE"}
    assert not [path for path in GAME.rglob("*.[ch]pp") if {"net", "nn"} & set(path.relative_to(GAME).parts)]


def test_the_stub_is_current() -> None:
    stub = (ROOT / "libs/five/native/_native.pyi").read_text()
    missing = [name for name in dir(_native) if not name.startswith("_") and not re.search(rf"\b{name}\b", stub)]
    assert not missing, f"run python -m nanobind.stubgen -m five.native._native (missing {missing})"
