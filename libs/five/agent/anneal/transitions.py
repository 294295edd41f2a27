"""State transitions of an anneal, on an operator's request or the guard's verdict. Pure functions."""

from dataclasses import dataclass
from enum import StrEnum

from five.agent.anneal.document import ACTIVE, Anneal, AnnealRamp, AnnealState
from five.agent.anneal.guard import GuardDecision, GuardVerdict


class InvalidTransition(Exception):
    """The anneal's state does not allow the request. The message says which states do."""


class FollowUp(StrEnum):
    """Change of the run that a transition requires."""

    NOTHING = "nothing"
    APPLY_OVERRIDES = "apply overrides"  # merge them into the record's game
    REVERT = "revert"  # to version ``base``


@dataclass(frozen=True)
class Transition:
    """The anneal after a transition, the required change of the run, and whether anything changed."""

    anneal: Anneal
    follows: FollowUp = FollowUp.NOTHING
    changed: bool = True


def _transition(anneal: Anneal, follows: FollowUp = FollowUp.NOTHING, **changes: object) -> Transition:
    document = {**anneal.to_json(), "revision": anneal.revision + 1, **changes}
    return Transition(Anneal.model_validate(document), follows)


def _require_active(anneal: Anneal, verb: str) -> None:
    if anneal.state not in ACTIVE:
        raise InvalidTransition(f"anneal {anneal.id!r} is {anneal.state}: only a ramping or holding anneal can be "
                                f"{verb}")


def _ramp(anneal: Anneal, version: int, share: float) -> dict[str, object]:
    return AnnealRamp(start=version, share=share, length=anneal.ramp.length).model_dump()


def hold(anneal: Anneal, version: int, who: str) -> Transition:
    """Freeze the share. Raise InvalidTransition."""
    _require_active(anneal, "held")
    if anneal.state is AnnealState.HOLDING and anneal.held_by == who:
        return Transition(anneal, changed=False)
    return _transition(anneal, state=AnnealState.HOLDING, held_by=who,
                       ramp=_ramp(anneal, version, anneal.share(version)), reason=f"held by {who}")


def resume(anneal: Anneal, version: int) -> Transition:
    """Let the share grow from its present value. Raise InvalidTransition."""
    _require_active(anneal, "resumed")
    if anneal.state is AnnealState.RAMPING:
        return Transition(anneal, changed=False)
    return _transition(anneal, state=AnnealState.RAMPING, held_by="", ramp=_ramp(anneal, version, anneal.ramp.share),
                       reason="")


def set_share(anneal: Anneal, share: float, version: int, who: str) -> Transition:
    """Set the share and hold it there, whatever the gates. Raise InvalidTransition, or ValueError outside of 0 to 1."""
    _require_active(anneal, "given a share")
    if not 0 <= share <= 1:
        raise ValueError(f"share {share:g}: 0 to 1 is allowed")
    share = round(share, 9)  # documents hold no number whose square underflows
    if anneal.state is AnnealState.HOLDING and anneal.held_by == who and anneal.ramp.share == share:
        return Transition(anneal, changed=False)
    passed = sum(gate < share for gate in anneal.policy.gates)
    return _transition(anneal, state=AnnealState.HOLDING, held_by=who, ramp=_ramp(anneal, version, share),
                       passed=max(passed, anneal.passed), reason=f"{who} set the share to {share:g}")


def promote(anneal: Anneal, who: str) -> Transition:
    """Make the change part of the game. Raise InvalidTransition."""
    if anneal.state is AnnealState.PROMOTED:
        return Transition(anneal, FollowUp.APPLY_OVERRIDES, changed=False)
    _require_active(anneal, "promoted")
    return _transition(anneal, FollowUp.APPLY_OVERRIDES, state=AnnealState.PROMOTED, held_by="",
                       reason=f"promoted by {who}")


def abort(anneal: Anneal, who: str) -> Transition:
    """End the anneal without the change, and keep the weights. Raise InvalidTransition."""
    if anneal.state is AnnealState.ABORTED:
        return Transition(anneal, changed=False)
    if anneal.state not in ACTIVE | {AnnealState.FAILED}:
        raise InvalidTransition(f"anneal {anneal.id!r} is {anneal.state}: only a ramping, holding or failed anneal "
                                "can be aborted")
    return _transition(anneal, state=AnnealState.ABORTED, held_by="", reason=f"aborted by {who}; the weights are kept")


def fail(anneal: Anneal, why: str) -> Transition:
    """End the attempt without the change, and request a revert to version ``base``. Raise InvalidTransition."""
    if anneal.state is AnnealState.FAILED:
        return Transition(anneal, FollowUp.REVERT, changed=False)
    _require_active(anneal, "failed")
    return _transition(anneal, FollowUp.REVERT, state=AnnealState.FAILED, held_by="", reason=why)


def complete_revert(anneal: Anneal, version: int) -> Transition:
    """Start the next attempt, with a longer ramp, after the run was reverted; or end if the policy allows no more.

    ``version`` is the newest version after the revert. Raise InvalidTransition.
    """
    if anneal.state is not AnnealState.FAILED:
        raise InvalidTransition(f"anneal {anneal.id!r} is {anneal.state}: only a failed anneal can be tried again")
    policy = anneal.policy
    if policy.on_fail == "stop":
        return _transition(anneal, state=AnnealState.REVERTED,
                           reason=f"{anneal.reason}. Reverted; the policy allows no retry")
    if anneal.attempt >= policy.tries:
        return _transition(anneal, state=AnnealState.REVERTED,
                           reason=f"{anneal.reason}. Reverted after the last of {policy.tries} attempts")
    length = max(min(round(anneal.ramp.length * policy.slower), 10_000_000), 1)
    reason = (f"attempt {anneal.attempt + 1} of {policy.tries}, over {length} versions; previous attempt: "
              f"{anneal.reason}")
    return _transition(anneal, state=AnnealState.RAMPING, attempt=anneal.attempt + 1, began=version, passed=0,
                       held_by="", ramp=AnnealRamp(start=version, share=0.0, length=length).model_dump(), reason=reason)


def advance(anneal: Anneal, version: int, decision: GuardDecision) -> Transition:
    """Apply the guard's decision at the newest version.

    A failure ends the attempt in any state. A pass opens the gate that the share has reached, and promotes the change
    at the last gate, unless an operator holds the anneal. Without a verdict the anneal waits at the gate.
    """
    if anneal.state not in ACTIVE:
        return Transition(anneal, changed=False)
    if decision.verdict is GuardVerdict.FAIL:
        return fail(anneal, decision.reason)
    share = anneal.share(version)
    if share < anneal.gate or anneal.held_by not in ("", "gate"):
        return Transition(anneal, changed=False)
    if decision.verdict is GuardVerdict.INCONCLUSIVE:
        reason = f"waits at a share of {share:g}: {decision.reason}"
        if anneal.state is not AnnealState.HOLDING:
            return _transition(anneal, state=AnnealState.HOLDING, held_by="gate", ramp=_ramp(anneal, version, share),
                               reason=reason)
        # The ramp stays, because versions before its start do not count for a pass.
        return _transition(anneal, reason=reason) if anneal.reason != reason else Transition(anneal, changed=False)
    if share >= 1:
        return _transition(anneal, FollowUp.APPLY_OVERRIDES, state=AnnealState.PROMOTED, held_by="",
                           reason=f"promoted: {decision.reason}")
    return _transition(anneal, state=AnnealState.RAMPING, held_by="", ramp=_ramp(anneal, version, share),
                       passed=anneal.passed + 1, reason=f"passed the gate at {share:g}: {decision.reason}")
