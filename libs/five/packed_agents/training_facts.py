"""Facts of a run for the card of a packed agent, from the run's folder and from a person."""

import json
import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from pydantic import ValidationError

from five.local.run_folder import RunFolder
from five.local.run_origin import RunOrigin
from five.packed_agents.card import TrainingFacts, first_problem
from five.packed_agents.errors import AgentUnavailable
from five.reports.run_report import STOP_SECONDS
from five.run.config import RunConfig
from rapid.malformed import MALFORMED

# The facts that a person may give, and their options.
OPTIONS = {"command": "--trained-by", "commit": "--commit", "hero_steps": "--hero-steps", "hours": "--hours",
           "hardware": "--hardware"}


def training_facts(folder: RunFolder, config: RunConfig, version: int, given: Mapping[str, Any], cost: str = ""
                   ) -> TrainingFacts:
    """Return the facts of a version's training. ``given`` replaces facts of `OPTIONS`.

    Without a ``cost`` core-hours or GPU-hours are the cost. Raises AgentUnavailable naming the facts that the folder
    lacks, with their options.
    """
    origin = RunOrigin.load(folder.origin)
    found: dict[str, Any] = {}
    if origin is not None:
        found |= {"command": origin.command, "commit": origin.commit, "hardware": origin.hardware}
    found |= _progress(folder, version) | dict(given)
    missing = [option for name, option in OPTIONS.items() if name not in found]
    if missing:
        raise AgentUnavailable(f"{folder.path} does not say how version {version} was trained: add "
                               f"{', '.join(missing)}")
    if not cost:
        gpus = len(origin.gpus) if origin is not None else 0
        cores = origin.cores if origin is not None else 0
        cost = f"{gpus * found['hours']:.1f} GPU-hours" if gpus else \
            f"{cores * found['hours']:.1f} core-hours" if cores else "unknown"
    try:
        return TrainingFacts(run=config.name, version=version, cost=cost, seeds=[config.seed],
                             parent="" if origin is None else origin.parent, **found)
    except ValidationError as error:
        raise AgentUnavailable(f"facts of the training: {first_problem(error)}") from None


def _progress(folder: RunFolder, version: int) -> dict[str, Any]:
    """Return hero-steps and hours of training of the version in the run's records; empty without records."""
    try:
        saved = json.loads(folder.records.read_text(encoding="utf-8"))
        upto = [row for row in saved["versions"] if row["version"] <= version]
        if not upto:
            older = [row for row in saved.get("older", ()) if row["version"] <= version]
            return {} if not older else {
                "hero_steps": int(older[-1]["hero_steps"]),
                "hours": round((60 * older[-1]["minutes"] - older[-1]["stopped_seconds"]) / 3600, 2)}
        # Minutes count from the start of the run. If much more time passed between two versions than the training of
        # the second took, the run was stopped in between.
        gaps = [60 * (row["minutes"] - before["minutes"]) - row.get("seconds", math.inf)
                for before, row in pairwise(upto)]
        stopped = saved.get("stopped_seconds", 0.0) + sum(gap for gap in gaps if gap > STOP_SECONDS)
        seconds = 60 * upto[-1]["minutes"] - stopped
        return {"hero_steps": int(upto[-1]["hero_steps"]), "hours": round(seconds / 3600, 2)}
    except FileNotFoundError:
        return {}
    except MALFORMED as error:
        raise AgentUnavailable(f"{folder.records} is not the data of a report: {error}") from None
