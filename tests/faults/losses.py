"""Losses of a run after faults, counted from its state."""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rapid.store.series import Series
from tests.faults.cluster import Watched

RESULTS = Path(__file__).resolve().parents[2] / "build" / "faults"


@dataclass
class Losses:
    """``versions``: missing numbers, and numbers without a record or with two; ``ratings``: rated versions without a
    record or with two; ``games``: games recorded twice; ``learning``: versions by which the optimizer's checkpoint was
    behind at each restart."""

    versions: int = 0
    ratings: int = 0
    games: int = 0
    learning: list[int] = field(default_factory=list)


def losses(run: Watched) -> Losses:
    """Return the losses of the whole run so far."""
    state = run.cluster.state
    series = Series(state.redis, state.run)
    published = [record.version for record in run.store.records()]
    head = run.head()
    missing = len(set(range(head + 1)) - set(published))
    recorded = Counter(int(r.values["version"]) for r in series.read("versions"))
    # A version's record follows the version, so the newest may be missing.
    unrecorded = sum(recorded[version] != 1 for version in range(1, head))
    rated = Counter(r.values["version"] for r in series.read("ratings") if r.values.get("version") is not None)
    games = Counter(r.values["game"] for r in series.read("games"))
    resumed = [e.details for e in state.events.last(1000) if e.what == "optimizer.resumed"]
    return Losses(missing + unrecorded, sum(n - 1 for n in rated.values()), sum(n - 1 for n in games.values()),
                  [int(d["version"]) - int(d["checkpoint"]) for d in resumed])


def keep(name: str, row: dict[str, Any]) -> None:
    """Store a row of the table (tests.faults.table)."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(row, indent=1) + "\n")
