"""Actions that are offered to the policy."""

import pytest

from five.agent.surgery.steps.actions import AddActions
from tests.agent.surgery.agents import agent


@pytest.mark.parametrize(("buyback", "scripted", "added", "expected"), [
    (False, ["glyph", "shrine"], ["glyph"], {"scripted_actions": ["shrine"]}),
    (True, ["shrine", "glyph"], ["shrine"], {"scripted_actions": ["glyph"]}),
    (True, ["buyback", "glyph"], ["buyback"], {"scripted_actions": ["glyph"]}),
    (False, ["buyback", "glyph"], ["buyback"], {"buyback": True, "scripted_actions": ["glyph"]}),
    (False, ["glyph"], ["buyback"], {"buyback": True, "scripted_actions": ["glyph"]}),
    (False, ["glyph", "shrine"], ["glyph", "buyback"], {"buyback": True, "scripted_actions": ["shrine"]})])
def test_offered_actions_change_the_games_keys(buyback: bool, scripted: list[str], added: list[str],
                                               expected: dict[str, object]) -> None:
    spec = agent(1, buyback=buyback, scripted_actions=scripted)
    step = AddActions.model_validate({"actions": added})
    assert step.switches(spec) == expected
    after = step.apply(spec)
    assert after.game == spec.game.model_copy(update=expected) and after.schema == spec.schema
    assert step.model_copy(update={"anneal_versions": 5}).apply(spec) == spec, "annealed in later"


@pytest.mark.parametrize(("buyback", "scripted", "added"), [
    (True, [], "glyph"), (False, [], "glyph"), (False, ["glyph"], "shrine"), (True, ["glyph"], "buyback")])
@pytest.mark.parametrize("anneal", [None, 10])
def test_offered_action_cannot_be_added_again(buyback: bool, scripted: list[str], added: str,
                                              anneal: int | None) -> None:
    spec = agent(1, buyback=buyback, scripted_actions=scripted)
    step = AddActions.model_validate({"actions": [added], "anneal_versions": anneal})
    with pytest.raises(ValueError, match=f"add action {added}: it is offered already"):
        step.apply(spec)
