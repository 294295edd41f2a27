"""The anneal as the controller keeps it: begun, advanced by the newest version and the guard's verdict, ended."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from dota.config import GameConfig
from dota.spaces import Layout
from five.agent.anneal.course import Follows, Step, advance, fail, reverted
from five.agent.anneal.document import LIVE, Anneal, AnnealRamp, AnnealState, overlaid
from five.agent.anneal.guard import Judgement, judge
from five.agent.anneal.pairs import pairs_of
from five.run.load import quoting_hint
from five.services.controller.operations.document import Operation, OperationKind, OperationState, SurgeryRequest
from five.services.controller.operations.store import Busy, OperationStore
from rapid.store.anneal import AnnealStore
from rapid.store.errors import FencedOut
from rapid.store.record import RunRecord
from rapid.store.state import ACTIVE, RunState, Status

log = logging.getLogger(__name__)
CONTROLLER = "controller"


class NoAnneal(ValueError):
    """A change that cannot be annealed; the text says why."""


def changed_game(record: RunRecord, overrides: Mapping[str, Any]) -> GameConfig:
    """The run's game with the change. Raises NoAnneal for what is no game, no change, or another layout."""
    try:
        now = GameConfig.model_validate(dict(record.game))
        then = GameConfig.model_validate(overlaid(now.model_dump(mode="json"), overrides))
    except ValidationError as error:
        said = "; ".join(f"game.{'.'.join(map(str, e['loc']))}: {e['msg']}{quoting_hint(e['type'], e['input'])}"
                         for e in error.errors())
        raise NoAnneal(f"the game cannot be changed so: {said}") from None
    if then == now:
        raise NoAnneal("the run's game is so already: there is nothing to anneal")
    if Layout(then).hash != Layout(now).hash:
        raise NoAnneal("the change concerns the layout of observations and actions, which all games of a run share: "
                       "that takes surgery (POST /v1/surgery/plan)")
    return then


def read(state: RunState) -> Anneal | None:
    """The run's anneal; None when nothing was ever annealed."""
    document = AnnealStore(state).read()
    return None if document is None else Anneal.model_validate(document)


def write(state: RunState, before: Anneal | None, after: Anneal, who: str, what: str) -> bool:
    """Replaces the anneal if it is still ``before``, with an event. Returns whether it was."""
    def edit(document: Any) -> tuple[Any, str, dict[str, Any]] | None:
        now = None if document is None else Anneal.model_validate(document)
        if now != before:
            return None
        return after.to_json(), f"anneal.{what}", {
            "anneal": after.id, "state": after.state, "attempt": after.attempt, "share": after.ramp.share,
            "said": after.said, "from": None if before is None else before.state}

    return AnnealStore(state).change(edit, who)


def begin_anneal(state: RunState, operation: Operation, kept: Mapping[str, Any]) -> str:
    """Begins what the operation was asked for, from the version ``kept["head"]``; again is once. Returns why it cannot
    be, '' when it has begun."""
    asked, record = operation.request.anneal, state.record()
    if asked is None or record is None or kept.get("head") is None:
        return "there is no version yet to go back to"
    head = int(kept["head"])
    before = read(state)
    if before is not None and before.id == asked["id"]:
        return ""
    if before is not None and before.state in LIVE | {AnnealState.FAILED}:
        return f"anneal {before.id!r} is {before.state}: one at a time"
    try:
        changed_game(record, asked["overrides"])
        ramp = AnnealRamp(start=head, length=asked["length"])
        anneal = Anneal(id=asked["id"], overrides=asked["overrides"], base=head, began=head, ramp=ramp,
                        guard=asked["guard"], policy=asked["policy"])
    except ValueError as error:
        return str(error)
    return "" if write(state, before, anneal, operation.who, "began") else "somebody else began another anneal"


def end_anneal(state: RunState, operation: Operation) -> str:
    """Ends an anneal that a person's revert goes back behind. Returns its id, '' when there is none to end."""
    target = operation.request.to_version
    while operation.request.anneal is None and target is not None:
        anneal = read(state)
        if anneal is None or anneal.state not in LIVE | {AnnealState.FAILED} or target > anneal.base:
            return ""
        over = anneal.model_copy(update={
            "state": AnnealState.REVERTED, "held_by": "", "revision": anneal.revision + 1,
            "said": f"{operation.who} reverted the run to version {target}, from before it"})
        if write(state, anneal, over, operation.who, "reverted"):
            return anneal.id
    return ""


def judgement_of(state: RunState, anneal: Anneal) -> Judgement:
    """What the guard makes of the present attempt's pairs."""
    return judge(anneal.guard, pairs_of(AnnealStore(state).pairs().all(), anneal.trial), anneal.gate)


def revert_request(anneal: Anneal, record: RunRecord) -> SurgeryRequest:
    """What the operation is asked for that takes a failed attempt back."""
    return SurgeryRequest(name=f"anneal {anneal.trial} to version {anneal.base}", parent=record.schema,
                          epoch=record.epoch, to_version=anneal.base, anneal={"trial": anneal.trial})


@dataclass
class AnnealKeeper:
    """Looks at the anneal again and again. It remembers nothing: whoever comes after it finds the same documents."""

    state: RunState
    operations: OperationStore
    head: Any  # () -> the newest version, or None

    def look(self) -> Anneal | None:
        """Does what is due, and returns the anneal after it. Raises redis.RedisError."""
        anneal = read(self.state)
        version = self.head()
        if anneal is None or version is None:
            return anneal
        if anneal.state is AnnealState.FAILED:
            return self._take_back(anneal, version)
        if anneal.state not in LIVE:
            return anneal
        now = self.state.status()
        if now is None or now.status not in ACTIVE:
            return anneal
        return self.carry_out(anneal, advance(anneal, version, judgement_of(self.state, anneal)), CONTROLLER)

    def carry_out(self, before: Anneal, step: Step, who: str) -> Anneal:
        """Makes a step: what follows from it first, so that a crash between the two finds it done."""
        if step.follows is Follows.MAKE_IT_THE_GAME:
            self._make_it_the_game(before, who)
        if step.changed and not write(self.state, before, step.anneal, who, step.anneal.state):
            return read(self.state) or before  # somebody was faster: the next look decides again
        return step.anneal

    def _make_it_the_game(self, anneal: Anneal, who: str) -> None:
        record = self.state.record()
        if record is None:
            return
        try:
            game = changed_game(record, anneal.overrides).model_dump(mode="json")
        except NoAnneal:
            return  # it is the game already
        try:
            self.state.set_record(record, record.changed(new_epoch=False, game=game), who, "anneal.made_the_game",
                                  {"anneal": anneal.id, "overrides": anneal.overrides})
        except FencedOut as error:
            log.info("the record has changed meanwhile, the next look decides: %s", error)
            raise

    def _take_back(self, anneal: Anneal, version: int) -> Anneal:
        """Has a failed attempt's version before the change put back, once."""
        mine = next((o for o in self.operations.all() if o.kind is OperationKind.REVERT
                     and (o.request.anneal or {}).get("trial") == anneal.trial), None)
        if mine is None:
            record, now = self.state.record(), self.state.status()
            if record is None or now is None or now.status not in (Status.RUNNING, Status.PAUSED):
                return anneal
            try:
                self.operations.begin(OperationKind.REVERT, CONTROLLER, revert_request(anneal, record), now.status,
                                      anneal.said)
            except Busy as busy:
                log.info("anneal %s waits to be reverted: %s", anneal.id, busy)
        elif mine.state is OperationState.DONE:
            return self.carry_out(anneal, reverted(anneal, version), CONTROLLER)
        return anneal


def failed_by(anneal: Anneal, who: str, reason: str) -> Step:
    """The step of an anneal that somebody takes back by request: no further try follows. Raises NotPossible."""
    step = fail(anneal, f"{who} asked for it to be reverted{f': {reason}' if reason else ''}")
    policy = step.anneal.policy.model_copy(update={"on_fail": "stop"})
    return Step(step.anneal.model_copy(update={"policy": policy}), step.follows, step.changed)
