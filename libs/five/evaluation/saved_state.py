"""A run's record, ratings and draft evidence in its folder, readable while its stores are down.

``record.json`` is written with the report. Without it, or before the first surgery, the configuration is complete.
"""

import json
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from dota.registry import load
from five.agent.draft.evidence import EVIDENCE_GAMES, DraftEvidence
from five.agent.surgery import MigrationChain
from five.run.migration import chain_of
from rapid.atomic_file import replace_text
from rapid.malformed import MALFORMED
from rapid.store.record import RunRecord
from rapid.store.series import Record
from rapid.store.state import RunState
from rapid.store.surgery_plans import PlanStore


class SavedRecord(NamedTuple):
    """A run's record and the texts of its applied plans."""

    record: RunRecord
    plans: dict[str, dict[str, Any]]

    @property
    def chain(self) -> MigrationChain:
        """Chain of the applied plans. Raises run.migration.BrokenChain."""
        return chain_of(self.record, self.plans)


def save_record(state: RunState, path: Path) -> None:
    """Write the record and its plans atomically. Do nothing for a run without a record."""
    record = state.record()
    if record is None:
        return
    plans = PlanStore(state).all() if record.chain else {}
    applied = {digest: plans[digest] for digest in record.chain if digest in plans}
    replace_text(path, json.dumps({"record": json.loads(record.to_json()), "plans": applied}))


def save_ladder(state: RunState, path: Path) -> None:
    """Write the rows of the run's ratings atomically. Do nothing for a run without ratings."""
    rows = state.table("ratings").all()
    if rows:
        replace_text(path, json.dumps(rows))


def save_evidence(games: Iterable[Record], path: Path) -> None:
    """Write the draft evidence of the newest games atomically. ``games``: their records, newest first."""
    evidence = DraftEvidence(load().heroes)
    for record in islice(games, EVIDENCE_GAMES):
        evidence.add(record.values)
    replace_text(path, json.dumps(evidence.to_json()))


def load_evidence(path: Path) -> DraftEvidence:
    """Return what `save_evidence` wrote; empty evidence without a file. Raises ValueError for an unreadable file."""
    try:
        return DraftEvidence.from_json(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return DraftEvidence(())
    except RecursionError:
        raise ValueError(f"{path}: not draft evidence: it is nested too deep") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def load_record(path: Path) -> SavedRecord | None:
    """Return what `save_record` wrote; None without a file. Raises ValueError for an unreadable file."""
    try:
        row = json.loads(path.read_text(encoding="utf-8"))
        return SavedRecord(RunRecord.from_json(json.dumps(row["record"])), dict(row["plans"]))
    except FileNotFoundError:
        return None
    except MALFORMED as error:
        raise ValueError(f"{path} is not a run's record: {error}") from None
