"""Another build of the core in the place of the tree's: what FIVE_LIBS names, a folder with a copy of the package."""

import os
import sys


def use_other_core() -> str | None:
    """Has ``dota`` come from FIVE_LIBS, if that is set, and returns it. An editable install must not be found first."""
    other = os.environ.get("FIVE_LIBS")
    if other:
        sys.meta_path[:] = [f for f in sys.meta_path if "ScikitBuild" not in type(f).__name__]
        sys.path.insert(0, other)
        for name in [m for m in sys.modules if m == "dota" or m.startswith("dota.")]:
            del sys.modules[name]
    return other
