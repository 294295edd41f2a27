"""Run record: the configuration that surgery can change, stored in the state Redis.

It overrides every configuration file. A file creates a run; afterwards a service uses its file with ``game`` and
``model`` replaced by the record's. ``revision`` counts the record's changes. ``epoch`` counts the changes after which
earlier writers are fenced out (a surgery, a revert).
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, NamedTuple

from rapid.malformed import MALFORMED

Json = Any


class RunRevision(NamedTuple):
    """Position of a record in the run's history, ordered."""

    epoch: int
    revision: int

    def __str__(self) -> str:
        return f"revision {self.revision} of epoch {self.epoch}"


@dataclass(frozen=True)
class RunRecord:
    """``game`` is the whole game configuration, ``model`` the model's without settings that only affect speed.

    ``layout`` and ``schema`` are their hashes ('' while unknown), ``chain`` the digests of the applied plans, oldest
    first, and ``anneal`` the change that is being annealed, if any.
    """

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
            raise ValueError(f"a run record's revision and epoch count from 1, not {self.revision} and {self.epoch}")

    @property
    def run_revision(self) -> RunRevision:
        """Epoch and revision. A service that started under another revision than the run's must restart."""
        return RunRevision(self.epoch, self.revision)

    def changed(self, *, new_epoch: bool, **changes: Any) -> "RunRecord":
        """Return the next record: the next revision, and with ``new_epoch`` also the next epoch."""
        return replace(self, revision=self.revision + 1, epoch=self.epoch + int(new_epoch), **changes)

    def to_json(self) -> str:
        """Return text for ``from_json``. Equal records have equal texts."""
        return json.dumps({**asdict(self), "chain": list(self.chain)}, sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> "RunRecord":
        """Parse ``to_json``'s text. Raise ValueError for anything else, or a record of a newer release."""
        try:
            row = json.loads(text)
            unknown = sorted(set(row) - {f.name for f in fields(cls)})
            if unknown:
                raise ValueError(f"unknown fields {', '.join(unknown)}: use a newer release")
            return cls(**{**row, "chain": tuple(row["chain"])})
        except MALFORMED as error:
            raise ValueError(f"the run's record cannot be read: {error}") from None
