"""Metrics of the anneal: its share, its attempt and the state that it is in."""

import pytest

from five.agent.anneal.document import Anneal, AnnealRamp, AnnealState
from five.services.controller.anneal.metrics import show_anneal
from rapid.telemetry.metrics import REGISTRY

ANNEAL = Anneal(id="patch", overrides={"patch": "7.21d"}, base=0, began=0, ramp=AnnealRamp(start=0, length=10))


def shown(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(f"five_controller_{name}", labels)


def states() -> dict[str, float | None]:
    return {str(state): shown("anneal_state", state=str(state)) for state in AnnealState}


def test_run_without_an_anneal_is_in_no_state() -> None:
    show_anneal(None, lambda: 3)
    assert states() == dict.fromkeys(states(), 0.0)


@pytest.mark.parametrize("state", AnnealState)
def test_each_state_is_shown_alone(state: AnnealState) -> None:
    show_anneal(ANNEAL.model_copy(update={"state": state, "attempt": 2}), lambda: 4)
    assert states() == {str(each): float(each is state) for each in AnnealState}
    assert shown("anneal_attempt_info") == 2.0
    ramped = {AnnealState.RAMPING: 0.4}  # a holding anneal has the share at which it was held
    assert shown("anneal_ratio") == ramped.get(state, 0.0)


def test_share_follows_the_newest_version() -> None:
    shares = []
    for head in (None, 0, 1, 2, 100):
        show_anneal(ANNEAL, lambda head=head: head)  # type: ignore[misc]
        shares.append(shown("anneal_ratio"))
    assert shares == [0.0, 0.0, 0.1, 0.2, 0.5], "the first gate is at 0.5"
