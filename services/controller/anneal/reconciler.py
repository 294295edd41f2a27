"""Reconciliation of the anneal: begins it, applies the guard's verdict at each new version, and ends it."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from dota.config import GameConfig
from dota.spaces import Layout
from dota.tables import hero_ids
from five.agent.anneal.document import ACTIVE, FINISHED, Anneal, AnnealRamp, AnnealState, merge_overrides
from five.agent.anneal.guard import GuardDecision, decide
from five.agent.anneal.pair_records import parse_pairs
from five.agent.anneal.transitions import FollowUp, Transition, advance, complete_revert, fail
from five.run.load import type_hint
from five.services.controller.operations.document import Operation, OperationKind, OperationRequest, OperationState
from five.services.controller.operations.store import OperationInProgress, OperationStore
from rapid.store import state as run_state
from rapid.store.anneal import AnnealStore
from rapid.store.errors import FencedOut
from rapid.store.record import RunRecord
from rapid.store.state import RunState, Status

log = logging.getLogger(__name__)
CONTROLLER = "controller"


class AnnealError(ValueError):
    """Error of a change that cannot be annealed; the message gives the reason."""


class NothingToAnneal(AnnealError):
    """Error of a change that the run's game has already."""


def game_with_overrides(record: RunRecord, overrides: Mapping[str, Any]) -> GameConfig:
    """Return the run's game with the overrides. Raise AnnealError if it is invalid or unchanged, needs another layout
    or frameskip, or names a hero that the game lacks."""
    try:
        now = GameConfig.model_validate(dict(record.game))
        then = GameConfig.model_validate(merge_overrides(now.model_dump(mode="json"), overrides))
    except ValidationError as error:
        reason = "; ".join(f"game.{'.'.join(map(str, e['loc']))}: {e['msg']}{type_hint(e['type'], e['input'])}"
                           for e in error.errors())
        raise AnnealError(f"overrides: the resulting game is invalid: {reason}") from None
    if then == now:
        raise NothingToAnneal("overrides: the run's game has these values already, so there is nothing to anneal")
    if Layout(then).hash != Layout(now).hash:
        raise AnnealError(
            "overrides: the change alters the layout of observations and actions, which all games of a "
            "run share. Use surgery instead (POST /v1/surgery/plan)")
    if then.frameskip != now.frameskip:
        raise AnnealError("overrides: all games of a run share game.frameskip. Use surgery instead "
                          "(POST /v1/surgery/plan)")
    try:
        hero_ids(then)
    except ValueError as error:
        raise AnnealError(f"overrides: game.{error}") from None
    return then


def read_anneal(state: RunState) -> Anneal | None:
    """Return the run's anneal, or None if there never was one."""
    document = AnnealStore(state).read()
    return None if document is None else Anneal.model_validate(document)


def replace_anneal(state: RunState, before: Anneal | None, after: Anneal, who: str, what: str) -> bool:
    """Replace the anneal if it still equals ``before``, and append an event. Return whether it was replaced."""
    def edit(document: Any) -> tuple[Any, str, dict[str, Any]] | None:
        now = None if document is None else Anneal.model_validate(document)
        if now != before:
            return None
        return after.to_json(), f"anneal.{what}", {
            "anneal": after.id, "state": after.state, "attempt": after.attempt, "share": after.ramp.share,
            "reason": after.reason, "from": None if before is None else before.state}

    return AnnealStore(state).change(edit, who)


def begin_anneal(state: RunState, operation: Operation, kept: Mapping[str, Any]) -> str:
    """Begin the requested anneal at version ``kept["head"]``; repeating it has no further effect. Return '' or the
    reason why it cannot begin.
    """
    requested, record = operation.request.anneal, state.record()
    if requested is None or record is None or kept.get("head") is None:
        return "the run has no version to revert to yet"
    head = int(kept["head"])
    before = read_anneal(state)
    if before is not None and before.id == requested["id"]:
        return ""
    if before is not None and before.state not in FINISHED:
        return f"anneal {before.id!r} is {before.state}: only one can be active"
    try:
        game_with_overrides(record, requested["overrides"])
        ramp = AnnealRamp(start=head, length=requested["length"])
        anneal = Anneal(id=requested["id"], overrides=requested["overrides"], base=head, began=head, ramp=ramp,
                        guard=requested["guard"], policy=requested["policy"])
    except ValueError as error:
        return str(error)
    if replace_anneal(state, before, anneal, operation.who, "began"):
        return ""
    # After a lost reply the write is repeated, and finds its own result.
    now = read_anneal(state)
    return "" if now is not None and now.id == anneal.id else "another anneal was begun at the same time"


def end_anneal(state: RunState, operation: Operation) -> str:
    """End an anneal that began after the version an operator reverts to. Return its id, or '' without one."""
    target = operation.request.to_version
    if operation.request.anneal is not None or target is None:
        return ""  # reverted by the anneal's own guard
    while True:  # until no concurrent change intervenes
        anneal = read_anneal(state)
        if anneal is None or anneal.state in FINISHED or target > anneal.base:
            return ""
        ended = anneal.model_copy(update={
            "state": AnnealState.REVERTED, "held_by": "", "revision": anneal.revision + 1,
            "reason": f"{operation.who} reverted the run to version {target}, before the anneal"})
        if replace_anneal(state, anneal, ended, operation.who, "reverted"):
            return anneal.id


def judge_anneal(state: RunState, anneal: Anneal) -> GuardDecision:
    """Return the guard's judgement of the current attempt's game pairs."""
    return decide(anneal.guard, parse_pairs(AnnealStore(state).pairs().all(), anneal.trial), anneal.gate)


def revert_request(anneal: Anneal, record: RunRecord) -> OperationRequest:
    """Return the operation request that reverts a failed attempt."""
    return OperationRequest(name=f"anneal {anneal.trial} to version {anneal.base}", parent=record.schema,
                            epoch=record.epoch, to_version=anneal.base,
                            anneal={"trial": anneal.trial, "revision": anneal.revision})


@dataclass
class AnnealReconciler:
    """Reconciles the anneal with the newest version and the guard's verdict. It decides from stored documents alone, so
    another controller can continue."""

    state: RunState
    operations: OperationStore
    head: Callable[[], int | None]  # returns the newest version
    _warned: str = ""  # of an error that recurs in every pass

    def reconcile(self) -> Anneal | None:
        """Apply every step that is due and return the anneal afterwards. Raise redis.RedisError."""
        anneal = read_anneal(self.state)
        version = self.head()
        if anneal is None or version is None:
            return anneal
        if anneal.state is AnnealState.FAILED:
            return self._revert_failed(anneal, version)
        if anneal.state not in ACTIVE:
            return anneal
        now = self.state.status()
        if now is None or now.status not in run_state.ACTIVE:
            return anneal
        try:
            return self.apply_step(anneal, advance(anneal, version, judge_anneal(self.state, anneal)), CONTROLLER)
        except AnnealError as error:
            warning = f"anneal {anneal.id} cannot be promoted, abort it: {error}"
            if warning != self._warned:
                log.warning(warning)
            self._warned = warning
            return anneal

    def apply_step(self, before: Anneal, step: Transition, who: str) -> Anneal:
        """Apply a step. The side effect comes first, so that it is found done after a crash between the two writes.
        Raise AnnealError if the run's game has changed so that it cannot have the annealed change."""
        if step.follows is FollowUp.APPLY_OVERRIDES:
            self._promote(before, who)
        if step.changed and not replace_anneal(self.state, before, step.anneal, who, step.anneal.state):
            return read_anneal(self.state) or before  # changed concurrently; the next pass decides again
        return step.anneal

    def _promote(self, anneal: Anneal, who: str) -> None:
        record = self.state.record()
        if record is None:
            return
        try:
            game = game_with_overrides(record, anneal.overrides).model_dump(mode="json")
        except NothingToAnneal:
            return  # by a controller that died before it changed the anneal
        try:
            self.state.set_record(record, record.changed(new_epoch=False, game=game), who, "anneal.made_the_game",
                                  {"anneal": anneal.id, "overrides": anneal.overrides})
        except FencedOut as error:
            log.info("run record changed concurrently, deciding again in the next pass: %s", error)
            raise

    def _revert_failed(self, anneal: Anneal, version: int) -> Anneal:
        """Begin the revert to the version before a failed attempt: once, and once more if an operator requests it after
        it failed."""
        reverts = [o for o in self.operations.all() if o.kind is OperationKind.REVERT
                   and (o.request.anneal or {}).get("trial") == anneal.trial]
        if any(o.state is OperationState.DONE for o in reverts):
            return self.apply_step(anneal, complete_revert(anneal, version), CONTROLLER)
        record, now = self.state.record(), self.state.status()
        if (any(not o.is_over or self._revision(o, anneal) >= anneal.revision for o in reverts) or record is None
                or now is None or now.status not in (Status.RUNNING, Status.PAUSED)):
            return anneal
        try:
            self.operations.begin(OperationKind.REVERT, CONTROLLER, revert_request(anneal, record), now.status,
                                  anneal.reason)
        except OperationInProgress as busy:
            log.info("revert of anneal %s is waiting: %s", anneal.id, busy)
        return anneal

    def _revision(self, revert: Operation, anneal: Anneal) -> int:
        """Return the anneal's revision for which a revert began."""
        request = revert.request
        revision = (request.anneal or {}).get("revision")
        if revision is None:  # of an earlier release: it answers all requests up to now
            revision = anneal.revision
            request = request.model_copy(update={"anneal": {**(request.anneal or {}), "revision": revision}})
            self.operations.save(revert, revert.model_copy(update={"request": request}))
        return int(revision)


def fail_on_request(anneal: Anneal, who: str, reason: str) -> Transition:
    """Return the step that fails the anneal at an operator's request, without another attempt. Raise
    five.agent.anneal.transitions.InvalidTransition."""
    step = fail(anneal, f"{who} requested the revert{f': {reason}' if reason else ''}")
    policy = step.anneal.policy.model_copy(update={"on_fail": "stop"})
    return Transition(step.anneal.model_copy(update={"policy": policy, "revision": anneal.revision + 1}), step.follows)
