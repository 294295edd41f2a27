"""What a service plays by: its configuration file with what the run's record holds in its place.

Surgery changes the record; files and ConfigMaps lag behind it, visibly, and undo nothing.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from five.run.config import RunConfig
from five.run.load import ConfigError, explain
from rapid.store.record import RunRecord

# How a version is computed, not what it is: the file's own.
OF_NO_VERSION = frozenset({"precision"})


class Difference(NamedTuple):
    """A key in which file and record differ, as a dotted path, with both values. None: it is not there."""

    key: str
    file: Any
    record: Any


def recorded(config: RunConfig) -> tuple[dict[str, Any], dict[str, Any]]:
    """The trees of a configuration that a record holds: the game's, and the model's without OF_NO_VERSION."""
    tree = config.model_dump(mode="json", by_alias=True)
    return tree["game"], {key: value for key, value in tree["model"].items() if key not in OF_NO_VERSION}


def overlay(config: RunConfig, record: RunRecord) -> RunConfig:
    """``config`` with the record's game and model. Raises ConfigError when this release cannot read them."""
    tree = config.model_dump(mode="json", by_alias=True)
    own = {key: tree["model"][key] for key in OF_NO_VERSION}
    try:
        return RunConfig.model_validate({**tree, "game": dict(record.game), "model": {**record.model, **own}})
    except ValidationError as error:
        raise ConfigError(explain(error, f"the record of run {config.name!r} (revision {record.revision})")) from None


def drift(config: RunConfig, record: RunRecord) -> list[Difference]:
    """Where a file's configuration differs from the record that overrules it, by key path."""
    effective = overlay(config, record)
    found: list[Difference] = []
    for section, mine, theirs in zip(("game", "model"), recorded(config), recorded(effective), strict=True):
        found += _differences(section, mine, theirs)
    return found


def _differences(path: str, mine: Any, theirs: Any) -> Iterator[Difference]:
    if isinstance(mine, Mapping) and isinstance(theirs, Mapping):
        for key in sorted(mine.keys() | theirs.keys()):
            yield from _differences(f"{path}.{key}", mine.get(key), theirs.get(key))
    elif mine != theirs:
        yield Difference(path, mine, theirs)
