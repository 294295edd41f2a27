"""A run's record and its applied plans in the run's folder, for when its stores are down.

``record.json`` is written with the report. Without it, or before the first surgery, the configuration says all.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dota.registry import load
from five.agent.draft.evidence import EVIDENCE_GAMES, DraftEvidence
from five.agent.surgery import MigrationChain
from five.run.migration import chain_of
from rapid.store.record import RunRecord
from rapid.store.series import Record
from rapid.store.state import RunState
from rapid.store.surgery_plans import PlanStore


class SavedRecord(NamedTuple):
    """What the file holds."""

    record: RunRecord
    plans: dict[str, dict[str, Any]]

    @property
    def chain(self) -> MigrationChain:
        """The plans that the run has gone through. Raises run.migration.BrokenChain."""
        return chain_of(self.record, self.plans)


def save_record(state: RunState, path: Path) -> None:
    """Writes the record and the plans that it names, beside first and then renamed. A run without a record is left."""
    record = state.record()
    if record is None:
        return
    plans = PlanStore(state).all() if record.chain else {}
    applied = {digest: plans[digest] for digest in record.chain if digest in plans}
    beside = path.with_suffix(".json.partial")
    beside.write_text(json.dumps({"record": json.loads(record.to_json()), "plans": applied}))
    beside.replace(path)


def save_ladder(state: RunState, path: Path) -> None:
    """Writes the rows of the run's ratings, beside first and then renamed. A run without ratings is left."""
    rows = state.table("ratings").all()
    if rows:
        beside = path.with_suffix(".json.partial")
        beside.write_text(json.dumps(rows))
        beside.replace(path)


def save_evidence(games: Sequence[Record], path: Path) -> None:
    """Writes what the newest games' records say of a draft's numbers, beside first and then renamed."""
    evidence = DraftEvidence(load().heroes)
    for record in games[-EVIDENCE_GAMES:]:
        evidence.add(record.values)
    beside = path.with_suffix(".json.partial")
    beside.write_text(json.dumps(evidence.to_json()))
    beside.replace(path)


def load_evidence(path: Path) -> DraftEvidence:
    """What ``save_evidence`` wrote; nothing is known where it never did. Raises ValueError for what cannot be read."""
    try:
        return DraftEvidence.from_json(json.loads(path.read_text()))
    except FileNotFoundError:
        return DraftEvidence(())


def load_record(path: Path) -> SavedRecord | None:
    """What ``save_record`` wrote; None when it never did. Raises ValueError for what cannot be read."""
    try:
        row = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return SavedRecord(RunRecord.from_json(json.dumps(row["record"])), row["plans"])
