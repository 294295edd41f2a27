"""Replace the tree's native modules by those of another build: what FIVE_LIBS names, a folder with a copy of dota."""

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType


class NativeModuleFinder(MetaPathFinder):
    """Find ``five.native._native`` in another folder; its Python code stays the tree's."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
                  ) -> ModuleSpec | None:
        if fullname != "five.native._native":
            return None
        (library,) = self._folder.glob("_native*.so")
        return spec_from_file_location(fullname, library)


def use_other_core() -> str | None:
    """Import ``dota`` and ``five.native._native`` from FIVE_LIBS, if that is set, and return it.

    The editable install must not find them first. Calls after the first one change nothing.
    """
    other = os.environ.get("FIVE_LIBS")
    if other and other not in sys.path:
        sys.meta_path[:] = [f for f in sys.meta_path if "ScikitBuild" not in type(f).__name__]
        sys.path.insert(0, other)
        if (native := Path(other, "five/native")).is_dir():
            sys.meta_path.insert(0, NativeModuleFinder(native))
        for name in [m for m in sys.modules if m.split(".")[0] == "dota" or m.startswith("five.native")]:
            del sys.modules[name]
    return other
