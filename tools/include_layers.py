"""Check of the C++ core's layers: each folder of libs/dota/core includes only itself and the folders below it.

``python -m tools.include_layers [CORE]`` prints each include that breaks the order. Its exit status is 1 if any does.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

CORE = Path(__file__).resolve().parents[1] / "libs" / "dota" / "core"

# From the lowest layer to the highest.
LAYERS = ("base", "data", "world", "map", "effects", "rules", "view", "bots", "vec", "play", "client", "bindings")

# Written by the build, see libs/dota/core/sources.cmake.
GENERATED = frozenset({"core_sources.hpp"})

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def violations(core: Path) -> Iterator[str]:
    """Yield one line for each source outside the layers and each quoted include that a file's layer does not allow."""
    for source in sorted(path for suffix in ("*.cpp", "*.hpp") for path in core.rglob(suffix)):
        name = source.relative_to(core).as_posix()
        layer = name.split("/")[0]
        if layer not in LAYERS:
            yield f"{name}: the folder {layer!r} is not a layer: {', '.join(LAYERS)}"
            continue
        for included in INCLUDE.findall(source.read_text(encoding="utf-8")):
            if included in GENERATED:
                continue
            if not (core / included).is_file():
                yield f"{name}: {included!r} does not exist: write the path from libs/dota/core"
            elif LAYERS.index(included.split("/")[0]) > LAYERS.index(layer):
                yield f"{name}: {included!r} is in a higher layer: {' <- '.join(LAYERS)}"


def main(arguments: list[str]) -> int:
    """Print the violations in the given core, by default that of the tree. Return the exit status."""
    found = list(violations(Path(arguments[0]) if arguments else CORE))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
