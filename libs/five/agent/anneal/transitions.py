"""How an anneal goes from state to state: what people ask for, and what the guard's verdicts bring. Pure functions."""

from dataclasses import dataclass
from enum import StrEnum

from five.agent.anneal.document import ACTIVE, Anneal, AnnealRamp, AnnealState
from five.agent.anneal.guard import GuardDecision, Verdict


class InvalidTransition(Exception):
    """What was asked for is not possible in the anneal's state; the text says what is."""


class FollowUp(StrEnum):
    """What a change of state asks of whoever keeps the run."""

    NOTHING = "nothing"
    MAKE_IT_THE_GAME = "make it the game"  # lay the overrides over the record's game
    REVERT = "revert"  # to ``base``


@dataclass(frozen=True)
class Transition:
    """The anneal after a step, what follows from it, and whether anything changed at all."""

    anneal: Anneal
    follows: FollowUp = FollowUp.NOTHING
    changed: bool = True


def _revise(anneal: Anneal, **changes: object) -> Anneal:
    return Anneal.model_validate({**anneal.to_json(), "revision": anneal.revision + 1, **changes})


def _require_active(anneal: Anneal, verb: str) -> None:
    if anneal.state not in ACTIVE:
        raise InvalidTransition(f"anneal {anneal.id!r} is {anneal.state}: only one that is ramping or holding can be {verb}")


def hold(anneal: Anneal, version: int, who: str) -> Transition:
    """The share stays where it is. Raises NotPossible."""
    _require_active(anneal, "held")
    if anneal.state is AnnealState.HOLDING and anneal.held_by == who:
        return Transition(anneal, changed=False)
    ramp = anneal.ramp.model_copy(update={"share": anneal.share(version), "start": version})
    return Transition(_revise(anneal, state=AnnealState.HOLDING, held_by=who, ramp=ramp.model_dump(), said=f"held by {who}"))


def resume(anneal: Anneal, version: int) -> Transition:
    """The share grows on from where it is. Raises NotPossible."""
    _require_active(anneal, "resumed")
    if anneal.state is AnnealState.RAMPING:
        return Transition(anneal, changed=False)
    ramp = AnnealRamp(start=version, share=anneal.ramp.share, length=anneal.ramp.length)
    return Transition(_revise(anneal, state=AnnealState.RAMPING, held_by="", ramp=ramp.model_dump(), said=""))


def set_share(anneal: Anneal, share: float, version: int, who: str) -> Transition:
    """Sets the share and holds it there, past gates as well. Raises NotPossible, ValueError outside of 0 to 1."""
    _require_active(anneal, "given a share")
    if not 0 <= share <= 1:
        raise ValueError(f"a share is 0 to 1, not {share:g}")
    if anneal.state is AnnealState.HOLDING and anneal.held_by == who and anneal.ramp.share == share:
        return Transition(anneal, changed=False)
    passed = sum(gate < share for gate in anneal.policy.gates)
    ramp = AnnealRamp(start=version, share=share, length=anneal.ramp.length)
    return Transition(_revise(anneal, state=AnnealState.HOLDING, held_by=who, ramp=ramp.model_dump(),
                      passed=max(passed, anneal.passed), said=f"{who} set the share to {share:g}"))


def promote(anneal: Anneal, who: str) -> Transition:
    """The change becomes the game. Raises NotPossible."""
    if anneal.state is AnnealState.PROMOTED:
        return Transition(anneal, FollowUp.MAKE_IT_THE_GAME, changed=False)
    _require_active(anneal, "promoted")
    return Transition(_revise(anneal, state=AnnealState.PROMOTED, held_by="", said=f"promoted by {who}"),
                FollowUp.MAKE_IT_THE_GAME)


def abort(anneal: Anneal, who: str) -> Transition:
    """No game has the change any more; the weights stay. Raises NotPossible."""
    if anneal.state is AnnealState.ABORTED:
        return Transition(anneal, changed=False)
    if anneal.state not in ACTIVE | {AnnealState.FAILED}:
        raise InvalidTransition(f"anneal {anneal.id!r} is {anneal.state}: there is nothing to abort")
    return Transition(_revise(anneal, state=AnnealState.ABORTED, held_by="", said=f"aborted by {who}; the weights are kept"))


def fail(anneal: Anneal, why: str) -> Transition:
    """No game has the change any more, and the run is to go back to the version before it. Raises NotPossible."""
    if anneal.state is AnnealState.FAILED:
        return Transition(anneal, FollowUp.REVERT, changed=False)
    _require_active(anneal, "failed")
    return Transition(_revise(anneal, state=AnnealState.FAILED, held_by="", said=why), FollowUp.REVERT)


def complete_revert(anneal: Anneal, version: int) -> Transition:
    """The run is where it was before the change, its newest version now ``version``: the next try, slower, where the
    policy has one left. Raises NotPossible."""
    if anneal.state is not AnnealState.FAILED:
        raise InvalidTransition(f"anneal {anneal.id!r} is {anneal.state}: it did not fail")
    policy = anneal.policy
    if policy.on_fail == "stop":
        return Transition(_revise(anneal, state=AnnealState.REVERTED,
                          said=f"{anneal.said}. Reverted, and by policy not tried again"))
    if anneal.attempt >= policy.tries:
        return Transition(_revise(anneal, state=AnnealState.REVERTED,
                          said=f"{anneal.said}. Reverted after the last of {policy.tries} tries"))
    length = min(round(anneal.ramp.length * policy.slower), 10_000_000)
    ramp = AnnealRamp(start=version, share=0.0, length=max(length, 1))
    said = f"try {anneal.attempt + 1} of {policy.tries}, over {length} versions; the one before failed: {anneal.said}"
    return Transition(_revise(anneal, state=AnnealState.RAMPING, attempt=anneal.attempt + 1, began=version, passed=0,
                      held_by="", ramp=ramp.model_dump(), said=said))


def advance(anneal: Anneal, version: int, judgement: GuardDecision) -> Transition:
    """What the newest version and the guard's verdict make of an anneal.

    A failure ends the attempt wherever it stands, held or not. A pass opens the gate that the share has reached; at
    the last one the change is promoted, unless somebody holds it. Without a verdict it waits at the gate.
    """
    if anneal.state not in ACTIVE:
        return Transition(anneal, changed=False)
    if judgement.verdict is Verdict.FAIL:
        return fail(anneal, judgement.said)
    share = anneal.share(version)
    if share < anneal.gate or anneal.held_by not in ("", "gate"):
        return Transition(anneal, changed=False)
    if judgement.verdict is Verdict.INCONCLUSIVE:
        waits = f"waits at a share of {share:g}: {judgement.said}"
        if anneal.state is AnnealState.HOLDING and anneal.said == waits:
            return Transition(anneal, changed=False)
        ramp = AnnealRamp(start=version, share=share, length=anneal.ramp.length)
        return Transition(_revise(anneal, state=AnnealState.HOLDING, held_by="gate", ramp=ramp.model_dump(), said=waits))
    if share >= 1:
        return Transition(_revise(anneal, state=AnnealState.PROMOTED, held_by="", said=f"promoted: {judgement.said}"),
                    FollowUp.MAKE_IT_THE_GAME)
    ramp = AnnealRamp(start=version, share=share, length=anneal.ramp.length)
    return Transition(_revise(anneal, state=AnnealState.RAMPING, held_by="", ramp=ramp.model_dump(), passed=anneal.passed + 1,
                      said=f"passed the gate at {share:g}: {judgement.said}"))
