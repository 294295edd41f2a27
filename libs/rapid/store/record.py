"""The run's record: what surgery can change, kept in the state's Redis.

It is the truth over every configuration file. A file creates a run; afterwards a service plays by its file with
``game`` and ``model`` replaced by the record's. ``revision`` counts the record's changes; ``epoch`` those after which
what came before may no longer write (a surgery, a revert).
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, NamedTuple

Json = Any


class RunRevision(NamedTuple):
    """Position of a record in the run's history, ordered."""

    epoch: int
    revision: int

    def __str__(self) -> str:
        return f"revision {self.revision} of epoch {self.epoch}"


@dataclass(frozen=True)
class RunRecord:
    """``game`` is the whole tree of the game's configuration, ``model`` the model's without what only says how it is
    computed. ``layout`` and ``schema`` are what they come to ('' while nobody has worked it out), ``chain`` the digests
    of the plans that were applied, oldest first, ``anneal`` what is on its way into games, if anything is."""

    revision: int = 1
    epoch: int = 1
    game: Mapping[str, Json] = field(default_factory=dict)
    model: Mapping[str, Json] = field(default_factory=dict)
    layout: str = ""
    schema: str = ""
    chain: tuple[str, ...] = ()
    anneal: Mapping[str, Json] | None = None

    def __post_init__(self) -> None:
        if self.revision < 1 or self.epoch < 1:
            raise ValueError(f"a record's revision and epoch count from 1, not {self.revision} and {self.epoch}")

    @property
    def run_revision(self) -> RunRevision:
        """Epoch and revision. A service that started under another revision than the run's must restart."""
        return RunRevision(self.epoch, self.revision)

    def changed(self, *, new_epoch: bool, **changes: Any) -> "RunRecord":
        """The record that follows this one: the next revision, with ``new_epoch`` also the next epoch."""
        return replace(self, revision=self.revision + 1, epoch=self.epoch + int(new_epoch), **changes)

    def to_json(self) -> str:
        """Text that ``from_json`` reads; equal records have equal texts."""
        return json.dumps({**asdict(self), "chain": list(self.chain)}, sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> "RunRecord":
        """Reads ``to_json``. Raises ValueError for what is no record, or one of a newer release."""
        try:
            row = json.loads(text)
            unknown = sorted(set(row) - {f.name for f in fields(cls)})
            if unknown:
                raise ValueError(f"it has {', '.join(unknown)}, which this release does not know: use a newer one")
            return cls(**{**row, "chain": tuple(row["chain"])})
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(f"the run's record cannot be read: {error}") from None
