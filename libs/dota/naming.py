"""Command that assigns ids to new names in the game data: ``python -m dota.naming append``."""

import os
import sys

from dota import registry
from dota.registry import SPACES, Registry
from dota.spaces import PATCHES
from dota.tables import names_of


def main(arguments: list[str]) -> int:
    """Run the command and return its exit status.

    ``append`` adds the names that the registry lacks after the existing ones. ``check`` only lists them, and returns 1
    if there are any.
    """
    if arguments not in (["append"], ["check"]):
        print("usage: python -m dota.naming append | check", file=sys.stderr)
        return 2
    old = new = registry.load()
    for patch in PATCHES:
        new = new.with_names(names_of(patch, new))
    for space in SPACES:
        if names := new.names[space][len(old.names[space]):]:
            print(f"{space}: {len(names)} new, {', '.join(names[:4])}{', ...' if len(names) > 4 else ''}")
    if new is old:
        print("every name of the game data has an id")
    elif arguments == ["check"]:
        return 1
    else:
        temporary = registry.FILE.with_suffix(".part")
        # A run adds one seal, also when several patches have new names.
        temporary.write_text(Registry(new.names, (*old.seals, new.seals[-1])).to_json(), encoding="utf-8")
        os.replace(temporary, registry.FILE)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
