"""Objective of a sweep: the figure of an evaluated version that the search maximises."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from five.ablation.comparison import MeanEstimate, mean

TRUESKILL: Literal["trueskill"] = "trueskill"
Objective = Literal["trueskill"] | Annotated[list[str], Field(min_length=1)]
_NORMAL95 = 1.96


def objective_name(objective: Objective) -> str:
    """Return the objective's name in tables."""
    return "TrueSkill" if isinstance(objective, str) else f"score against {', '.join(objective)}"


def version_objective(objective: Objective, evaluated: Mapping[str, Any]) -> MeanEstimate:
    """Return the objective of a version as stored in a run's result, with its 95 % interval over games.

    TrueSkill is that of the evaluation, which does not change as other runs end.
    """
    if isinstance(objective, str):
        return MeanEstimate(float(evaluated["mu"]), _NORMAL95 * float(evaluated["sigma"]), 1)
    matches = [evaluated["matches"][bot] for bot in objective]
    halves = [(match["interval"][1] - match["interval"][0]) / 2 for match in matches]
    score = sum(float(match["score"]) for match in matches) / len(matches)
    return MeanEstimate(score, math.hypot(*halves) / len(matches), 1)


def mean_over_seeds(versions: Sequence[MeanEstimate]) -> MeanEstimate:
    """Return the mean over seeds with its 95 % interval; with one seed its interval is that over games."""
    return versions[0] if len(versions) == 1 else mean([version.value for version in versions])
