"""`five config KEY`: describe a key of the configuration, or list a section's keys."""

import dataclasses
import difflib
import json
from collections.abc import Iterable

from five.run.load import ConfigError, load, presets
from five.run.reference import KeyReference, SectionReference, reference


def config(key: str, as_json: bool) -> int:
    """Print a key, or a section's meaning and keys. Return the exit status. Raises ConfigError for an unknown key."""
    sections = reference({name: load(name) for name in presets()})
    keys = select_keys(sections, key)
    if as_json:
        print(json.dumps([dataclasses.asdict(k) for k in keys], ensure_ascii=False, indent=1))
    elif len(keys) == 1:
        print(describe_key(keys[0]))
    else:
        print("\n".join([*(section.meaning for section in sections if section.path == key), *list_keys(keys)]))
    return 0


def select_keys(sections: Iterable[SectionReference], key: str) -> list[KeyReference]:
    """Return the key ``key``, or all keys of the section ``key``. Raises ConfigError naming similar keys."""
    keys = [k for section in sections for k in section.keys]
    exact = [k for k in keys if k.path == key]
    found = exact or [k for k in keys if k.path.startswith((f"{key}.", f"{key}[]."))]
    if not found:
        paths = [k.path for k in keys]
        last = [p for p in paths if p.rpartition(".")[2] == key.rpartition(".")[2]]
        near = last or difflib.get_close_matches(key, paths, n=3)
        hint = f"did you mean {' or '.join(near[:3])}?" if near else "docs/configuration.md lists all"
        raise ConfigError(f"{key}: unknown key; {hint}")
    return found


def describe_key(key: KeyReference) -> str:
    """Return the description of a key, one property a line."""
    rows = {"type": key.type, "default": key.default, "unit": key.unit, "meaning": key.meaning, "source": key.source,
            "class": key.defined, "presets": ", ".join(f"{name}: {value}" for name, value in key.presets.items())}
    return "\n".join([key.path, *(f"  {name:8} {value}" for name, value in rows.items() if value)])


def list_keys(keys: Iterable[KeyReference]) -> list[str]:
    """Return one line for each key: path, default and unit."""
    rows = [(key.path, key.default, key.unit if key.unit != "none" else "") for key in keys]
    width = max(len(path) for path, _, _ in rows)
    return [f"{path:{width}}  {default} {unit}".rstrip() for path, default, unit in rows]
