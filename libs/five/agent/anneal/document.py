"""The stored document of an anneal: a change of the game that is introduced gradually."""

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from five.agent.anneal.guard import GuardConfig
from rapid.section import Section

Json = Any
ID = r"^[a-z0-9][a-z0-9._-]{0,62}$"
MAX_OVERRIDES = 16_384  # characters of JSON


class AnnealState(StrEnum):
    """State of an anneal."""

    RAMPING = "ramping"  # the share grows with the versions
    HOLDING = "holding"  # the share is frozen by an operator, or by a gate that waits for the guard
    PROMOTED = "promoted"  # the change is part of the game
    ABORTED = "aborted"  # no game has the change; the weights are kept
    FAILED = "failed"  # the guard found harm; no game has the change, and the run will be reverted
    REVERTED = "reverted"  # no game has the change, and the run was reverted to the version before it


ACTIVE = frozenset({AnnealState.RAMPING, AnnealState.HOLDING})  # some games have the change
FINISHED = frozenset({AnnealState.PROMOTED, AnnealState.ABORTED, AnnealState.REVERTED})


class AnnealPolicy(Section):
    """Reaction to the guard's verdicts."""

    on_fail: Literal["retry", "stop"] = Field(
        "retry", description="After a failure the run is reverted to the last version before the change. retry: "
        "another, slower attempt follows; stop: none follows.")
    slower: float = Field(2.0, ge=1, le=100, description="Factor of the ramp's length from one attempt to the next.")
    tries: int = Field(3, ge=1, le=20, description="Maximum number of attempts.")
    gates: tuple[float, ...] = Field(
        (0.5, 1.0), strict=False, min_length=1, max_length=16, description="Shares at which the ramp waits for a pass "
        "of the guard, in rising order. The last one is 1, where the change is promoted.")

    @field_validator("gates")
    @classmethod
    def _check_gates(cls, gates: tuple[float, ...]) -> tuple[float, ...]:
        if list(gates) != sorted(set(gates)) or gates[0] <= 0 or gates[-1] != 1:
            raise ValueError(f"gates {list(gates)}: shares above 0 in rising order are required, the last one 1")
        return gates


class AnnealRamp(Section):
    """Linear growth of the share: ``share`` at version ``start``, plus 1 per ``length`` versions."""

    start: int = Field(ge=0)
    share: float = Field(0.0, ge=0, le=1)
    length: int = Field(ge=1, le=10_000_000)

    def at(self, version: int) -> float:
        """Return the share at a version, ignoring gates."""
        return min(1.0, self.share + max(version - self.start, 0) / self.length)


class Anneal(Section):
    """A gradual change of the game.

    ``overrides`` is a tree that is merged into the run's game configuration. ``base`` is the last version before the
    change: the guard compares with it, and a failure reverts to it. ``attempt`` counts from 1. Each attempt has its own
    pairs of games, of versions after ``began``. ``passed`` counts the gates passed in this attempt. ``held_by`` is '',
    "gate", or the name of the operator who holds the anneal. ``revision`` counts changes of the document.
    """

    id: str = Field(pattern=ID)
    overrides: dict[str, Json]
    base: int = Field(ge=0)
    began: int = Field(ge=0)
    ramp: AnnealRamp
    guard: GuardConfig = GuardConfig()
    policy: AnnealPolicy = AnnealPolicy()
    state: AnnealState = Field(AnnealState.RAMPING, strict=False)
    attempt: int = Field(1, ge=1)
    passed: int = Field(0, ge=0)
    held_by: str = Field("", max_length=128)
    reason: str = Field("", max_length=2000, description="Reason of the current state.")
    revision: int = Field(1, ge=1)

    @model_validator(mode="before")
    @classmethod
    def _read_old_name(cls, given: Any) -> Any:
        """Read ``reason`` from ``said``, its name in documents stored before 0.2.0."""
        if isinstance(given, Mapping) and "said" in given and "reason" not in given:
            return {**{key: value for key, value in given.items() if key != "said"}, "reason": given["said"]}
        return given

    @field_validator("overrides")
    @classmethod
    def _check_overrides(cls, overrides: dict[str, Json]) -> dict[str, Json]:
        if not overrides:
            raise ValueError("overrides is empty: at least one key of the game's configuration is required")
        if len(json.dumps(overrides)) > MAX_OVERRIDES:
            raise ValueError(f"overrides is longer than {MAX_OVERRIDES} characters of JSON")
        return overrides

    @property
    def trial(self) -> str:
        """Id of this attempt, which seeds its variants and pairs."""
        return f"{self.id}/{self.attempt}"

    @property
    def gate(self) -> float:
        """Share at which the ramp waits for the guard; 1 after all gates."""
        return self.policy.gates[min(self.passed, len(self.policy.gates) - 1)]

    def share(self, version: int) -> float:
        """Return the share of games with the change while ``version`` is the newest."""
        if self.state is AnnealState.RAMPING:
            return min(self.ramp.at(version), self.gate)
        return self.ramp.share if self.state is AnnealState.HOLDING else 0.0

    def shown_at(self, version: int) -> float:
        """Return the share that a version was trained under, or 0 for versions before the ramp's last change."""
        return self.share(version) if version >= self.ramp.start else 0.0

    def to_json(self) -> dict[str, Json]:
        """Return JSON values that ``model_validate`` reads."""
        return self.model_dump(mode="json")


def merge_overrides(game: Mapping[str, Json], overrides: Mapping[str, Json]) -> dict[str, Json]:
    """Return a configuration tree with ``overrides`` merged in: sections are merged, values and lists replaced."""
    out = dict(game)
    for key, value in overrides.items():
        section = out.get(key)
        if isinstance(section, Mapping) and isinstance(value, Mapping):
            out[key] = merge_overrides(section, value)
        else:
            out[key] = value
    return out
