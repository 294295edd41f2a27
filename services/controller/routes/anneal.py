"""Routes below /v1/anneal: gradual introduction of a game change, watched by a guard."""

import functools
import re
import secrets
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from five.agent.anneal.document import FINISHED, MAX_OVERRIDES, Anneal, AnnealPolicy
from five.agent.anneal.guard import GuardConfig, estimate_power
from five.agent.anneal.transitions import InvalidTransition, Transition, abort, hold, promote, resume, set_share
from five.agent.anneal.variants import Variant
from five.services.controller.anneal.reconciler import (
    AnnealError,
    AnnealReconciler,
    fail_on_request,
    game_with_overrides,
    judge_anneal,
    read_anneal,
)
from five.services.controller.http.dependencies import Context, ContextDep, DryRun, Operator, Viewer
from five.services.controller.http.problems import Problem, responses
from five.services.controller.operations.document import Operation, OperationKind, OperationRequest
from five.services.controller.operations.store import OperationStore
from five.services.controller.routes.run import Reason
from five.services.controller.routes.surgery import NO_RUN, begin_operation
from rapid.store.errors import FencedOut

router = APIRouter(prefix="/anneal", tags=["anneal"])
NONE = "There is no anneal."
NOT_NOW = "The anneal's state does not allow this, or it was changed concurrently."
SIMULATED_ATTEMPTS = 400  # simulated for the guard's error rates
SPREADS = {"even": 0.5, "decided": 1.0}
_POWER: dict[str, Any] = {"false_alarm": 0.05, "loss": 0.2, "miss": 0.05, "caught": {"even": 0.98, "decided": 0.98},
                          "pairs_to_catch": {"even": 100, "decided": 190}}
_FINDING: dict[str, Any] = {"rule": "new", "pairs": 120, "mean": 0.04, "harm": 1.2, "fails_at": 40.0, "harmless": 14.1,
                            "passes_at": 20.0, "history": [[60, 1.1, 3.2], [120, 1.2, 14.1]]}
_ANNEAL: dict[str, Any] = {
    "id": "patch-7.21d-d4e5f6", "overrides": {"patch": "7.21d"}, "base": 800, "began": 800,
    "ramp": {"start": 800, "share": 0.0, "length": 400}, "guard": GuardConfig().model_dump(),
    "policy": AnnealPolicy().model_dump(mode="json"), "state": "ramping", "attempt": 1, "passed": 0, "held_by": "",
    "reason": "", "revision": 1}


class AnnealRequest(BaseModel):
    """A game change and how to introduce it."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{
        "name": "patch-7.21d", "overrides": {"patch": "7.21d"}, "versions": 400, "guard": {"loss": 0.1},
        "policy": {"on_fail": "retry", "slower": 2.0}, "reason": "the finals are played on it"}]})

    name: str = Field(min_length=1, max_length=48, pattern=r"^[a-z0-9][a-z0-9.-]*$",
                      description="Name: letters a-z, digits, dots and dashes.")
    overrides: dict[str, Any] = Field(min_length=1, description="Changed keys of the game's configuration, as a tree "
                                      "below `game`: a patch, a switch, a randomization. Changes of the layout need "
                                      f"surgery. At most {MAX_OVERRIDES} characters.")
    versions: int = Field(ge=1, le=10_000_000, strict=True, description="Versions from 0 to 100 % of games, without "
                          "the time at gates.")
    guard: GuardConfig = Field(default_factory=GuardConfig, description="Error rates of the guard.")
    policy: AnnealPolicy = Field(default_factory=AnnealPolicy, description="Actions after its verdicts.")
    reason: str = Field("", max_length=500, description="Why; kept with the operation.")


class ShareRequest(BaseModel):
    """A share of games."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"share": 0.25}]})

    share: float = Field(ge=0, le=1, allow_inf_nan=False, description="Share of games with the change.")


class GuardPower(BaseModel):
    """Error rates of the guard: bounds that hold for any games, and the detection rate of a loss of `loss` in
    simulations."""

    model_config = ConfigDict(json_schema_extra={"examples": [_POWER]})

    false_alarm: float = Field(description="Maximum probability that a harmless change ever fails.")
    loss: float = Field(description="The smallest loss to detect.")
    miss: float = Field(description="Maximum probability that such a loss passes under its rule.")
    caught: dict[str, float] = Field(description="Share of attempts with that loss that fail within the maximum "
                                     "number of pairs. even: half of the pairs are split 1-1; decided: none is.")
    pairs_to_catch: dict[str, int] = Field(description="Median number of pairs per rule until then.")


class RuleFinding(BaseModel):
    """Evidence under one rule: the value of a bet of 1 against the hypothesis."""

    model_config = ConfigDict(json_schema_extra={"examples": [_FINDING]})

    rule: Variant = Field(description="old: without the change; new: with the change.")
    pairs: int = Field(description="Played pairs of games: one seed, both sides.")
    mean: float = Field(description="Mean result of the newest version against the last one before the change, from 1 "
                        "(won) to -1 (lost).")
    harm: float = Field(description="Evidence that the newest version is worse.")
    fails_at: float = Field(description="Evidence at which the change fails.")
    harmless: float = Field(description="Evidence that it loses less than `loss`.")
    passes_at: float = Field(description="Evidence at which the change passes under this rule.")
    history: list[tuple[int, float, float]] = Field(description="Evidence after some of the pairs and after the last: "
                                                    "pairs, evidence of harm, evidence of no harm.")


class AnnealStatus(BaseModel):
    """The anneal and its progress."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "anneal": _ANNEAL, "version": 904, "share": 0.26, "verdict": "inconclusive",
        "reason": "undecided under the new rule", "findings": [_FINDING], "guard_power": _POWER}]})

    anneal: Anneal = Field(description="The change, its ramp, its guard and policy, and its state.")
    version: int = Field(description="The newest version.")
    share: float = Field(description="Current share of games that begin with the change.")
    verdict: str = Field(description="The guard's verdict: pass, fail or inconclusive (the share is held).")
    reason: str = Field(description="Reason for the verdict.")
    findings: list[RuleFinding] = Field(description="Evidence under each rule.")
    guard_power: GuardPower = Field(description="Error rates of the guard.")


@functools.lru_cache(maxsize=16)
def _power(config: GuardConfig) -> tuple[dict[str, float], dict[str, int]]:
    bounded = config.model_copy(update={"pairs": min(config.pairs, 2000)})
    found = {name: estimate_power(bounded, {Variant.OLD: 0.0, Variant.NEW: -config.loss},
                                  max(spread, config.loss), SIMULATED_ATTEMPTS, 1) for name, spread in SPREADS.items()}
    return {n: round(p.failed, 3) for n, p in found.items()}, {n: p.pairs for n, p in found.items()}


def guard_power(config: GuardConfig) -> GuardPower:
    """Return the guard's error rates; each configuration is simulated once."""
    caught, pairs = _power(config)
    return GuardPower(false_alarm=config.false_alarm, loss=config.loss, miss=config.miss, caught=caught,
                      pairs_to_catch=pairs)


def _status(context: Context, anneal: Anneal) -> AnnealStatus:
    version, judgement = context.store.head() or 0, judge_anneal(context.state, anneal)
    return AnnealStatus(
        anneal=anneal, version=version, share=anneal.share(version), verdict=judgement.verdict, reason=judgement.reason,
        findings=[RuleFinding(rule=f.rule, pairs=f.pairs, mean=f.mean, harm=f.harm, fails_at=f.fails,
                              harmless=f.harmless, passes_at=f.passes, history=list(f.history))
                  for f in judgement.findings],
        guard_power=guard_power(anneal.guard))


def _require_anneal(context: Context) -> Anneal:
    anneal = read_anneal(context.state)
    if anneal is None:
        raise Problem(404, "this run has no anneal: begin one with POST /v1/anneal")
    return anneal


def _apply_change(context: Context, who: str, dry_run: bool,
                  change: Callable[[Anneal, int], Transition]) -> AnnealStatus:
    anneal = _require_anneal(context)
    try:
        step = change(anneal, context.store.head() or 0)
        if dry_run:
            return _status(context, step.anneal)
        reconciler = AnnealReconciler(context.state, OperationStore(context.state), context.store.head)
        after = reconciler.apply_step(anneal, step, who)
    except (InvalidTransition, AnnealError) as error:
        raise Problem(409, str(error)) from None
    except FencedOut:
        after = None
    if after is None or after != step.anneal:
        raise Problem(409, "the anneal or the run's record was changed concurrently: read it again and retry")
    return _status(context, after)


@router.post("", status_code=202, responses=responses(_404=NO_RUN, _409="Another anneal or operation is "
                                                      "active."))
def begin_anneal(caller: Operator, context: ContextDep, body: AnnealRequest, response: Response, dry_run: DryRun = False
                 ) -> Operation:
    """Begin to anneal a change into games: 202 and the operation, which first keeps a checkpoint to return to.

    From then on a growing share of games has the change, selected by the hash of the game's id. The guard compares the
    newest version with the last one before the change, under both rules.
    """
    record = context.state.record()
    if record is None:
        raise Problem(404, f"there is no run {context.run!r} in this store yet")
    now = read_anneal(context.state)
    if now is not None and now.state not in FINISHED:
        raise Problem(409, f"anneal {now.id!r} is {now.state}: promote, abort or revert it first")
    identity = f"{body.name}-{secrets.token_hex(3)}"
    try:
        game_with_overrides(record, body.overrides)
        requested = Anneal.model_validate({
            "id": identity, "overrides": body.overrides, "base": 0, "began": 0,
            "ramp": {"start": 0, "length": body.versions}, "guard": body.guard, "policy": body.policy})
    except ValueError as error:
        raise Problem(422, re.sub(r"\s+", " ", str(error)),
                      errors=[{"where": "body.overrides", "what": "cannot be annealed"}]) from None
    request = OperationRequest(name=identity, parent=record.schema, epoch=record.epoch, anneal={
        "id": requested.id, "overrides": requested.overrides, "length": body.versions,
        "guard": requested.guard.model_dump(mode="json"), "policy": requested.policy.model_dump(mode="json")})
    return begin_operation(context, OperationKind.ANNEAL, caller.name, request, body.reason, dry_run, response)


@router.get("", responses=responses(_404=NONE))
def anneal(caller: Viewer, context: ContextDep) -> AnnealStatus:
    """Return the current or last anneal: its share, the guard's evidence and verdict, and the guard's error rates."""
    return _status(context, _require_anneal(context))


@router.post("/hold", responses=responses(_404=NONE, _409=NOT_NOW))
def hold_anneal(caller: Operator, context: ContextDep, dry_run: DryRun = False) -> AnnealStatus:
    """Hold the share at its value, even after a pass, until it is resumed."""
    return _apply_change(context, caller.name, dry_run, lambda a, version: hold(a, version, caller.name))


@router.post("/resume", responses=responses(_404=NONE, _409=NOT_NOW))
def resume_anneal(caller: Operator, context: ContextDep, dry_run: DryRun = False) -> AnnealStatus:
    """Let the share grow again."""
    return _apply_change(context, caller.name, dry_run, resume)


@router.put("/share", responses=responses(_404=NONE, _409=NOT_NOW))
def share_anneal(caller: Operator, context: ContextDep, body: ShareRequest, dry_run: DryRun = False) -> AnnealStatus:
    """Set the share and hold it."""
    return _apply_change(context, caller.name, dry_run,
                         lambda a, version: set_share(a, body.share, version, caller.name))


@router.post("/promote", responses=responses(_404=NONE, _409=NOT_NOW))
def promote_anneal(caller: Operator, context: ContextDep, dry_run: DryRun = False) -> AnnealStatus:
    """Make the change part of the run's game, whatever the guard says. Services restart with it."""
    return _apply_change(context, caller.name, dry_run, lambda a, version: promote(a, caller.name))


@router.post("/abort", responses=responses(_404=NONE, _409=NOT_NOW))
def abort_anneal(caller: Operator, context: ContextDep, dry_run: DryRun = False) -> AnnealStatus:
    """Remove the change from all games; the weights are not changed."""
    return _apply_change(context, caller.name, dry_run, lambda a, version: abort(a, caller.name))


@router.post("/revert", responses=responses(_404=NONE, _409=NOT_NOW))
def revert_anneal(caller: Operator, context: ContextDep, body: Reason | None = None,
                  dry_run: DryRun = False) -> AnnealStatus:
    """Remove the change and revert the run to the last version before it, without another attempt. The revert is an
    operation: see GET /v1/operations.
    """
    why = body.reason if body else ""
    return _apply_change(context, caller.name, dry_run, lambda a, version: fail_on_request(a, caller.name, why))


