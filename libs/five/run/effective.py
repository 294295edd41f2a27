"""Effective configuration of a service: its file with ``game`` and ``model`` replaced by the run's record.

Surgery changes the record. An outdated file or ConfigMap undoes nothing: its differences are reported as drift.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from five.run.config import RunConfig
from five.run.load import ConfigError, explain
from five.run.renamed_keys import migrate
from five.run.stored_values import move_to_bounds
from rapid.store.record import RunRecord

# Model keys that say how a version is computed, not what it is. They come from the file.
COMPUTATION_KEYS = frozenset({"precision"})


class ConfigDifference(NamedTuple):
    """A key, as a dotted path, whose values in the file and in the record differ. None: absent."""

    key: str
    file: Any
    record: Any


def record_trees(config: RunConfig) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the trees that a run's record holds: ``game``, and ``model`` without `COMPUTATION_KEYS`."""
    tree = config.model_dump(mode="json", by_alias=True)
    return tree["game"], {key: value for key, value in tree["model"].items() if key not in COMPUTATION_KEYS}


def overlay(config: RunConfig, record: RunRecord) -> RunConfig:
    """Return ``config`` with the record's game and model. Keys renamed since the record was written are migrated, and
    numbers beyond this release's bounds are moved to them.

    Raises ConfigError if this release cannot read the record.
    """
    tree = config.model_dump(mode="json", by_alias=True)
    own = {key: tree["model"][key] for key in COMPUTATION_KEYS}
    stored = migrate({"game": record.game, "model": record.model})
    moved, _ = move_to_bounds({**tree, "game": stored["game"], "model": {**stored["model"], **own}})
    try:
        return RunConfig.model_validate(moved)
    except ValidationError as error:
        raise ConfigError(explain(error, f"the record of run {config.name!r} (revision {record.revision})")) from None


def drift(config: RunConfig, record: RunRecord) -> list[ConfigDifference]:
    """Return the differences between a file's configuration and the record that overrides it, by key path."""
    effective = overlay(config, record)
    found: list[ConfigDifference] = []
    for section, mine, theirs in zip(("game", "model"), record_trees(config), record_trees(effective), strict=True):
        found += differences(section, mine, theirs)
    return found


def differences(path: str, mine: Any, theirs: Any) -> Iterator[ConfigDifference]:
    """Yield the differences between two values of the key ``path``, one for each key below it."""
    if isinstance(mine, Mapping) and isinstance(theirs, Mapping):
        for key in sorted(mine.keys() | theirs.keys()):
            yield from differences(f"{path}.{key}", mine.get(key), theirs.get(key))
    elif mine != theirs:
        yield ConfigDifference(path, mine, theirs)
