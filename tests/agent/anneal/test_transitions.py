import pytest

from five.agent.anneal.document import (
    MAX_OVERRIDES,
    Anneal,
    AnnealPolicy,
    AnnealRamp,
    AnnealState,
    merge_overrides,
)
from five.agent.anneal.guard import GuardConfig, GuardDecision, GuardVerdict
from five.agent.anneal.transitions import (
    FollowUp,
    InvalidTransition,
    abort,
    advance,
    complete_revert,
    fail,
    hold,
    promote,
    resume,
    set_share,
)

PASS, FAIL = (GuardDecision(v, (), f"it is a {v}") for v in (GuardVerdict.PASS, GuardVerdict.FAIL))
OPEN = GuardDecision(GuardVerdict.INCONCLUSIVE, (), "undecided")


def anneal(**changes: object) -> Anneal:
    return Anneal.model_validate({"id": "patch", "overrides": {"patch": "7.19"}, "base": 100, "began": 100,
                                  "ramp": {"start": 100, "length": 200}, **changes})


def test_share_grows_up_to_the_gate() -> None:
    a = anneal()
    assert [a.share(v) for v in (50, 100, 101, 150, 200, 250, 900)] == [0, 0, 0.005, 0.25, 0.5, 0.5, 0.5]
    assert a.trial == "patch/1" and a.shown_at(99) == 0 and a.shown_at(150) == 0.25


def test_gate_opens_on_a_pass_and_the_last_promotes() -> None:
    a = anneal()
    assert not advance(a, 150, PASS).changed  # between gates a pass changes nothing
    waiting = advance(a, 200, OPEN).anneal
    assert waiting.state is AnnealState.HOLDING
    assert (waiting.held_by, waiting.share(999), waiting.revision) == ("gate", 0.5, 2)
    assert waiting.reason == "waits at a share of 0.5: undecided" and not advance(waiting, 201, OPEN).changed
    on = advance(waiting, 210, PASS)
    assert on.anneal.state is AnnealState.RAMPING and on.follows is FollowUp.NOTHING and on.anneal.passed == 1
    assert [on.anneal.share(v) for v in (210, 260, 310, 400)] == [0.5, 0.75, 1.0, 1.0]
    assert on.anneal.shown_at(209) == 0 and on.anneal.shown_at(310) == 1
    last = advance(advance(on.anneal, 310, OPEN).anneal, 320, PASS)
    assert last.anneal.state is AnnealState.PROMOTED and last.follows is FollowUp.APPLY_OVERRIDES
    assert last.anneal.share(999) == 0  # its overrides are part of the game


def test_inconclusive_verdict_holds_at_the_gate() -> None:
    a = advance(anneal(), 200, OPEN).anneal
    for version in range(201, 3000, 7):
        step = advance(a, version, OPEN)
        assert not step.changed and step.anneal.share(version) == 0.5


def test_versions_at_the_gate_count_although_its_reason_changes() -> None:
    waiting = advance(anneal(), 200, OPEN).anneal
    later = advance(waiting, 260, GuardDecision(GuardVerdict.INCONCLUSIVE, (), "undecided under the new rule")).anneal
    assert later.reason == "waits at a share of 0.5: undecided under the new rule"
    assert later.revision == waiting.revision + 1 and later.shown_at(250) == 0.5


@pytest.mark.parametrize("held", [False, True])
def test_failed_attempt_is_retried_with_a_longer_ramp(held: bool) -> None:
    a = anneal(policy={"tries": 2, "slower": 3.0})
    if held:
        a = hold(a, 120, "anna").anneal
    failed = advance(a, 150, FAIL)
    assert failed.anneal.state is AnnealState.FAILED and failed.follows is FollowUp.REVERT
    assert failed.anneal.share(150) == 0 and failed.anneal.reason == "it is a fail"
    assert fail(failed.anneal, "again").follows is FollowUp.REVERT and not fail(failed.anneal, "again").changed
    assert not advance(failed.anneal, 160, PASS).changed
    second = complete_revert(failed.anneal, 180).anneal
    assert (second.state, second.attempt, second.base, second.trial) == (AnnealState.RAMPING, 2, 100, "patch/2")
    assert second.ramp == AnnealRamp(start=180, share=0.0, length=600) and second.share(240) == pytest.approx(0.1)
    assert "attempt 2 of 2, over 600 versions" in second.reason and "it is a fail" in second.reason
    last = complete_revert(advance(second, 200, FAIL).anneal, 260).anneal
    assert last.state is AnnealState.REVERTED and "after the last of 2 attempts" in last.reason
    with pytest.raises(InvalidTransition, match="only a failed anneal"):
        complete_revert(last, 300)


def test_policy_can_forbid_a_retry() -> None:
    a = anneal(policy={"on_fail": "stop"})
    done = complete_revert(advance(a, 150, FAIL).anneal, 160).anneal
    assert done.state is AnnealState.REVERTED and "allows no retry" in done.reason


def test_operator_holds_resumes_and_sets_the_share() -> None:
    held = hold(anneal(), 140, "anna").anneal
    assert held.state is AnnealState.HOLDING and held.share(999) == pytest.approx(0.2) and held.held_by == "anna"
    assert not hold(held, 150, "anna").changed  # idempotent
    assert not advance(held, 400, PASS).changed  # an operator's hold outranks a pass
    on = resume(held, 300).anneal
    assert on.share(300) == pytest.approx(0.2) and on.share(340) == pytest.approx(0.4) and not resume(on, 310).changed
    put = set_share(on, 0.75, 320, "anna").anneal
    assert put.share(999) == 0.75 and put.passed == 1 and put.gate == 1.0
    assert not set_share(put, 0.75, 330, "anna").changed
    assert resume(put, 330).anneal.share(10_000) == 1.0
    down = set_share(put, 0.0, 340, "anna").anneal
    assert down.share(999) == 0 and down.passed == 1
    for share in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="0 to 1"):
            set_share(on, share, 350, "anna")


def test_promote_and_abort_are_idempotent() -> None:
    done = promote(anneal(), "anna")
    assert done.anneal.state is AnnealState.PROMOTED and done.follows is FollowUp.APPLY_OVERRIDES
    assert promote(done.anneal, "anna") == type(done)(done.anneal, FollowUp.APPLY_OVERRIDES, False)
    gone = abort(anneal(), "anna")
    assert gone.anneal.state is AnnealState.ABORTED and gone.follows is FollowUp.NOTHING and gone.anneal.share(999) == 0
    assert "weights are kept" in gone.anneal.reason and not abort(gone.anneal, "anna").changed
    for verb, call in (("held", lambda a: hold(a, 1, "x")), ("promoted", lambda a: promote(a, "x")),
                       ("given a share", lambda a: set_share(a, 0.1, 1, "x")), ("resumed", lambda a: resume(a, 1))):
        with pytest.raises(InvalidTransition, match=f"is aborted: only a ramping or holding anneal can be {verb}"):
            call(gone.anneal)
    with pytest.raises(InvalidTransition, match="can be aborted"):
        abort(done.anneal, "anna")
    # A failed anneal that cannot be reverted can be aborted.
    assert abort(fail(anneal(), "harm").anneal, "anna").anneal.state is AnnealState.ABORTED


def test_gates_open_one_after_another() -> None:
    a = anneal(policy={"gates": [0.25, 0.75, 1.0]})
    assert [a.model_copy(update={"passed": passed}).gate for passed in range(5)] == [0.25, 0.75, 1.0, 1.0, 1.0]
    assert not advance(a, 149, OPEN).changed, "49 of 200 versions: below the gate"
    first = advance(a, 150, PASS).anneal
    assert (first.passed, first.share(150), first.share(249), first.share(250), first.share(999)) == (
        1, 0.25, pytest.approx(0.745), 0.75, 0.75)
    assert first.reason == "passed the gate at 0.25: it is a pass" and first.revision == a.revision + 1
    second = advance(first, 250, PASS)
    assert second.anneal.passed == 2 and second.anneal.state is AnnealState.RAMPING
    assert advance(second.anneal, 300, PASS).anneal.state is AnnealState.PROMOTED


def test_set_share_passes_the_gates_below_it() -> None:
    a = anneal(policy={"gates": [0.25, 0.75, 1.0]})
    for share, passed in ((0.0, 0), (0.25, 0), (0.26, 1), (0.75, 1), (0.76, 2), (1.0, 2)):
        put = set_share(a, share, 120, "anna").anneal
        assert (put.passed, put.share(500), put.held_by, put.state) == (passed, share, "anna", AnnealState.HOLDING)
        assert put.reason == f"anna set the share to {share:g}"
    again = set_share(put, 0.1, 130, "anna").anneal
    assert (again.passed, again.share(500)) == (2, 0.1)
    assert set_share(again, 0.1, 140, "bert").changed
    assert set_share(hold(a, 100, "anna").anneal, 0.5, 150, "anna").changed
    assert set_share(a, 0.1 + 1e-12, 120, "anna").anneal.ramp.share == 0.1


@pytest.mark.parametrize(("length", "slower", "after"), [
    (200, 1.5, 300), (1, 1.0, 1), (3, 1.5, 4), (10_000_000, 2.0, 10_000_000), (6_000_000, 2.0, 10_000_000)])
def test_length_of_the_next_attempt(length: int, slower: float, after: int) -> None:
    """The length times ``slower``, rounded (halves to even), at most ten million."""
    a = anneal(ramp={"start": 100, "length": length}, policy={"slower": slower})
    second = complete_revert(fail(a, "harm").anneal, 180).anneal
    assert (second.ramp.length, second.began, second.passed, second.held_by) == (after, 180, 0, "")
    assert second.share(180) == 0.0 and second.share(181) == pytest.approx(min(1 / after, 0.5))


def test_attempts_end_at_the_last_one() -> None:
    a = anneal(policy={"tries": 3})
    for attempt in (1, 2):
        assert a.attempt == attempt
        a = complete_revert(fail(a, "harm").anneal, 200).anneal
        assert a.state is AnnealState.RAMPING
    last = complete_revert(fail(a, "harm").anneal, 300).anneal
    assert (last.state, last.attempt, last.reason) == (
        AnnealState.REVERTED, 3, "harm. Reverted after the last of 3 attempts")


def test_share_of_a_version_before_the_ramp() -> None:
    ramp = AnnealRamp(start=100, share=0.5, length=10)
    assert [ramp.at(version) for version in (0, 100, 101, 105, 106, 1000)] == [0.5, 0.5, 0.6, 1.0, 1.0, 1.0]
    a = anneal(ramp={"start": 100, "share": 0.2, "length": 100})
    assert (a.shown_at(99), a.shown_at(100), a.shown_at(110)) == (0.0, 0.2, pytest.approx(0.3))


@pytest.mark.parametrize("state", [state for state in AnnealState if state not in ("ramping", "holding")])
def test_ended_anneal_has_no_share_and_does_not_advance(state: AnnealState) -> None:
    a = anneal(state=state, ramp={"start": 100, "share": 0.4, "length": 10})
    assert a.share(500) == 0.0 and a.shown_at(500) == 0.0
    for decision in (PASS, FAIL, OPEN):
        assert not advance(a, 500, decision).changed


def test_document_json_round_trip() -> None:
    a = hold(anneal(policy={"gates": [0.25, 1.0]}, guard={"loss": 0.1}), 130, "anna").anneal
    assert Anneal.model_validate(a.to_json()) == a


def test_defaults_of_the_policy_and_the_guard() -> None:
    """The values that docs/configuration.md and the console's form show."""
    assert AnnealPolicy().model_dump() == {"on_fail": "retry", "slower": 2.0, "tries": 3, "gates": (0.5, 1.0)}
    assert GuardConfig().model_dump() == {"false_alarm": 0.05, "loss": 0.2, "miss": 0.05, "pairs": 1000}


@pytest.mark.parametrize(("key", "value"), [
    ("false_alarm", 0.0), ("false_alarm", 0.5), ("loss", 0.0), ("loss", 1.0), ("miss", 0.0), ("miss", 0.5),
    ("pairs", 0), ("pairs", 100_001)])
def test_limits_of_the_guard_are_not_allowed_values(key: str, value: float) -> None:
    with pytest.raises(ValueError, match=key):
        GuardConfig.model_validate({key: value})


@pytest.mark.parametrize(("key", "value"), [
    ("false_alarm", 0.001), ("false_alarm", 0.499), ("loss", 0.001), ("loss", 0.999), ("miss", 0.001),
    ("miss", 0.499), ("pairs", 1), ("pairs", 100_000)])
def test_values_within_the_limits_of_the_guard_are_allowed(key: str, value: float) -> None:
    assert GuardConfig.model_validate({key: value}).model_dump()[key] == value


def test_overrides_may_have_the_longest_length() -> None:
    longest = MAX_OVERRIDES - len('{"x": ""}')
    assert anneal(overrides={"x": "y" * longest}).overrides
    with pytest.raises(ValueError, match="longer than"):
        anneal(overrides={"x": "y" * (longest + 1)})


def test_document_of_an_earlier_version_is_read() -> None:
    a = hold(anneal(), 130, "anna").anneal
    stored = a.to_json()
    stored["said"] = stored.pop("reason")
    assert a.reason and Anneal.model_validate(stored) == a


@pytest.mark.parametrize(("change", "said"), [
    ({"overrides": {}}, "overrides is empty"), ({"overrides": {"x": "y" * 20_000}}, "longer than"),
    ({"id": "../x"}, "id"), ({"ramp": {"start": 0, "length": 0}}, "length"),
    ({"ramp": {"start": 0, "length": 10_000_001}}, "length"),
    ({"policy": {"gates": [0.0, 1.0]}}, "rising order"), ({"policy": {"gates": [0.5, 0.5, 1.0]}}, "rising order"),
    ({"policy": {"tries": 0}}, "tries"), ({"attempt": 0}, "attempt"), ({"base": -1}, "base"),
    ({"surprise": 1}, "surprise"),
    ({"policy": {"gates": [0.5]}}, "rising order"), ({"policy": {"gates": [0.5, 0.2, 1.0]}}, "rising order"),
    ({"policy": {"slower": 0.5}}, "slower"), ({"guard": {"false_alarm": 0.9}}, "false_alarm")])
def test_invalid_anneal_is_rejected(change: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        anneal(**change)


def test_overrides_are_merged_into_a_tree() -> None:
    game = {"patch": "7.19", "randomisation": {"gold": 0.0, "xp": 0.1}, "hero_pool": ["lion", "sven"]}
    over = merge_overrides(game, {"patch": "7.21d", "randomisation": {"gold": 0.2}, "hero_pool": ["lion"]})
    assert over == {"patch": "7.21d", "randomisation": {"gold": 0.2, "xp": 0.1}, "hero_pool": ["lion"]}
    assert game["patch"] == "7.19" and AnnealPolicy().gates[-1] == 1
