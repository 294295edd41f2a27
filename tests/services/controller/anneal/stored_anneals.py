"""Anneals in the documents of a run that plays."""

from typing import Any

from dota.config import GameConfig
from dota.spaces import Layout
from five.agent.anneal.document import Anneal, AnnealRamp, AnnealState
from five.services.controller.anneal.reconciler import read_anneal, replace_anneal
from rapid.store.record import RunRecord
from rapid.store.state import RunState

GAME = GameConfig(patch="7.19", mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"])
RECORD = RunRecord(game=GAME.model_dump(mode="json"), layout=Layout(GAME).hash, schema="s")
OVERRIDES = {"patch": "7.21d"}
GAME_THEN = GAME.model_copy(update=OVERRIDES).model_dump(mode="json")
ANNEAL = Anneal(id="patch-1", overrides=OVERRIDES, base=10, began=10, ramp=AnnealRamp(start=10, length=100))
UNFINISHED = (AnnealState.RAMPING, AnnealState.HOLDING, AnnealState.FAILED)


def stored(run: RunState, anneal: Anneal = ANNEAL, /, **changes: Any) -> Anneal:
    """Store an anneal and return it."""
    made = anneal.model_copy(update=changes)
    assert replace_anneal(run, read_anneal(run), made, "test", "stored")
    return made


def events(state: RunState, first: str = "anneal.") -> list[str]:
    return [e.what for e in state.events.read() if e.what.startswith(first) and e.who != "test"]
