"""How an anneal goes from state to state: what people ask for, and what the guard's verdicts bring. Pure functions."""

from dataclasses import dataclass
from enum import StrEnum

from five.agent.anneal.document import LIVE, Anneal, AnnealRamp, AnnealState
from five.agent.anneal.guard import Judgement, Verdict


class NotPossible(Exception):
    """What was asked for is not possible in the anneal's state; the text says what is."""


class Follows(StrEnum):
    """What a change of state asks of whoever keeps the run."""

    NOTHING = "nothing"
    MAKE_IT_THE_GAME = "make it the game"  # lay the overrides over the record's game
    REVERT = "revert"  # to ``base``


@dataclass(frozen=True)
class Step:
    """The anneal after a step, what follows from it, and whether anything changed at all."""

    anneal: Anneal
    follows: Follows = Follows.NOTHING
    changed: bool = True


def _next(anneal: Anneal, **changes: object) -> Anneal:
    return Anneal.model_validate({**anneal.to_json(), "revision": anneal.revision + 1, **changes})


def _live(anneal: Anneal, verb: str) -> None:
    if anneal.state not in LIVE:
        raise NotPossible(f"anneal {anneal.id!r} is {anneal.state}: only one that is ramping or holding can be {verb}")


def hold(anneal: Anneal, version: int, who: str) -> Step:
    """The share stays where it is. Raises NotPossible."""
    _live(anneal, "held")
    if anneal.state is AnnealState.HOLDING and anneal.held_by == who:
        return Step(anneal, changed=False)
    ramp = anneal.ramp.model_copy(update={"share": anneal.share(version), "start": version})
    return Step(_next(anneal, state=AnnealState.HOLDING, held_by=who, ramp=ramp.model_dump(), said=f"held by {who}"))


def resume(anneal: Anneal, version: int) -> Step:
    """The share grows on from where it is. Raises NotPossible."""
    _live(anneal, "resumed")
    if anneal.state is AnnealState.RAMPING:
        return Step(anneal, changed=False)
    ramp = AnnealRamp(start=version, share=anneal.ramp.share, length=anneal.ramp.length)
    return Step(_next(anneal, state=AnnealState.RAMPING, held_by="", ramp=ramp.model_dump(), said=""))


def set_share(anneal: Anneal, share: float, version: int, who: str) -> Step:
    """Sets the share and holds it there, past gates as well. Raises NotPossible, ValueError outside of 0 to 1."""
    _live(anneal, "given a share")
    if not 0 <= share <= 1:
        raise ValueError(f"a share is 0 to 1, not {share:g}")
    if anneal.state is AnnealState.HOLDING and anneal.held_by == who and anneal.ramp.share == share:
        return Step(anneal, changed=False)
    passed = sum(gate < share for gate in anneal.policy.gates)
    ramp = AnnealRamp(start=version, share=share, length=anneal.ramp.length)
    return Step(_next(anneal, state=AnnealState.HOLDING, held_by=who, ramp=ramp.model_dump(),
                      passed=max(passed, anneal.passed), said=f"{who} set the share to {share:g}"))


def promote(anneal: Anneal, who: str) -> Step:
    """The change becomes the game. Raises NotPossible."""
    if anneal.state is AnnealState.PROMOTED:
        return Step(anneal, Follows.MAKE_IT_THE_GAME, changed=False)
    _live(anneal, "promoted")
    return Step(_next(anneal, state=AnnealState.PROMOTED, held_by="", said=f"promoted by {who}"),
                Follows.MAKE_IT_THE_GAME)


def abort(anneal: Anneal, who: str) -> Step:
    """No game has the change any more; the weights stay. Raises NotPossible."""
    if anneal.state is AnnealState.ABORTED:
        return Step(anneal, changed=False)
    if anneal.state not in LIVE | {AnnealState.FAILED}:
        raise NotPossible(f"anneal {anneal.id!r} is {anneal.state}: there is nothing to abort")
    return Step(_next(anneal, state=AnnealState.ABORTED, held_by="", said=f"aborted by {who}; the weights are kept"))


def fail(anneal: Anneal, why: str) -> Step:
    """No game has the change any more, and the run is to go back to the version before it. Raises NotPossible."""
    if anneal.state is AnnealState.FAILED:
        return Step(anneal, Follows.REVERT, changed=False)
    _live(anneal, "failed")
    return Step(_next(anneal, state=AnnealState.FAILED, held_by="", said=why), Follows.REVERT)


def reverted(anneal: Anneal, version: int) -> Step:
    """The run is where it was before the change, its newest version now ``version``: the next try, slower, where the
    policy has one left. Raises NotPossible."""
    if anneal.state is not AnnealState.FAILED:
        raise NotPossible(f"anneal {anneal.id!r} is {anneal.state}: it did not fail")
    policy = anneal.policy
    if policy.on_fail == "stop":
        return Step(_next(anneal, state=AnnealState.REVERTED,
                          said=f"{anneal.said}. Reverted, and by policy not tried again"))
    if anneal.attempt >= policy.tries:
        return Step(_next(anneal, state=AnnealState.REVERTED,
                          said=f"{anneal.said}. Reverted after the last of {policy.tries} tries"))
    length = min(round(anneal.ramp.length * policy.slower), 10_000_000)
    ramp = AnnealRamp(start=version, share=0.0, length=max(length, 1))
    said = f"try {anneal.attempt + 1} of {policy.tries}, over {length} versions; the one before failed: {anneal.said}"
    return Step(_next(anneal, state=AnnealState.RAMPING, attempt=anneal.attempt + 1, began=version, passed=0,
                      held_by="", ramp=ramp.model_dump(), said=said))


def advance(anneal: Anneal, version: int, judgement: Judgement) -> Step:
    """What the newest version and the guard's verdict make of an anneal.

    A failure ends the attempt wherever it stands, held or not. A pass opens the gate that the share has reached; at
    the last one the change is promoted, unless somebody holds it. Without a verdict it waits at the gate.
    """
    if anneal.state not in LIVE:
        return Step(anneal, changed=False)
    if judgement.verdict is Verdict.FAIL:
        return fail(anneal, judgement.said)
    share = anneal.share(version)
    if share < anneal.gate or anneal.held_by not in ("", "gate"):
        return Step(anneal, changed=False)
    if judgement.verdict is Verdict.INCONCLUSIVE:
        waits = f"waits at a share of {share:g}: {judgement.said}"
        if anneal.state is AnnealState.HOLDING and anneal.said == waits:
            return Step(anneal, changed=False)
        ramp = AnnealRamp(start=version, share=share, length=anneal.ramp.length)
        return Step(_next(anneal, state=AnnealState.HOLDING, held_by="gate", ramp=ramp.model_dump(), said=waits))
    if share >= 1:
        return Step(_next(anneal, state=AnnealState.PROMOTED, held_by="", said=f"promoted: {judgement.said}"),
                    Follows.MAKE_IT_THE_GAME)
    ramp = AnnealRamp(start=version, share=share, length=anneal.ramp.length)
    return Step(_next(anneal, state=AnnealState.RAMPING, held_by="", ramp=ramp.model_dump(), passed=anneal.passed + 1,
                      said=f"passed the gate at {share:g}: {judgement.said}"))
