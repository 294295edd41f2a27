"""The three action formats against the bots' actions, and against each other."""

import numpy as np
import pytest

from dota import presets
from dota.choices import AIMS, MIDDLE, ActionInputs, actions_for, choices_of
from dota.config import GameConfig
from dota.spaces import NOOP, ActionPart, Layout
from dota.vec_game import Controller, VecGame
from tests.dota.small_games import FORMS, MID, TEAM


@pytest.fixture(scope="module")
def played():
    """Games of both kinds after some bot play, with the heroes' available actions on the way."""
    out = {}
    for name, config in (("1v1", GameConfig.model_validate({**MID.model_dump(mode="json"), "max_game_seconds": 120})),
                         ("5v5", presets.load("laptop-5v5", start_seconds=-10).game)):
        games = VecGame(config, 2, seed=3)
        games.controllers[:] = Controller.SCRIPTED
        rows = []
        for step in range(600):
            games.step()
            if step % 40 == 0:
                rows.append((games.obs["available"].copy(), games.obs["target_mask"].copy()))
        out[name] = config, games.layout, ActionInputs(*(np.stack(parts) for parts in zip(*rows, strict=True)))
    return out


@pytest.mark.parametrize("kind", ["1v1", "5v5"])
@pytest.mark.parametrize("form", FORMS)
def test_masks_have_the_shape_of_the_parts_and_allow_something(played, form, kind):
    config, layout, seen = played[kind]
    choices = choices_of(form, config, layout)
    mask = choices.mask(seen)
    assert mask.dtype == np.int8 and mask.shape == (*seen.available.shape[:-1], choices.width)
    assert len(choices.names) == len(choices.parts)
    for part in np.split(mask, np.cumsum(choices.parts)[:-1], axis=-1):
        assert (part.max(-1) == 1).all() and set(np.unique(part)) <= {0, 1}


@pytest.mark.parametrize("kind", ["1v1", "5v5"])
@pytest.mark.parametrize("form", ["discrete", "factored"])
def test_any_mix_of_allowed_choices_is_allowed(played, form, kind):
    """It results in an available action with a valid target."""
    config, layout, seen = played[kind]
    choices, rng = choices_of(form, config, layout), np.random.default_rng(0)
    parts = np.split(choices.mask(seen), np.cumsum(choices.parts)[:-1], axis=-1)
    met = set()
    for _ in range(20):
        chosen = np.stack([(rng.random(part.shape) * part).argmax(-1) for part in parts], -1)
        orders, allowed = choices.orders(chosen, seen)
        assert allowed.all() and orders.dtype == np.int16
        action = np.take_along_axis(seen.available, orders[..., :1].astype(int), -1)[..., 0]
        assert (action != 0).all()
        met |= set(np.unique(action).tolist())
    assert len(met) > 5


def test_native_format_can_reject_a_mix_of_valid_slots(played):
    config, layout, seen = played["5v5"]
    native, rng = choices_of("native", config, layout), np.random.default_rng(0)
    parts = np.split(native.mask(seen), np.cumsum(native.parts)[:-1], axis=-1)
    found = [native.orders(np.stack([(rng.random(p.shape) * p).argmax(-1) for p in parts], -1), seen)[1]
             for _ in range(20)]
    assert 0 < np.mean(found) < 1


@pytest.mark.parametrize("kind", ["1v1", "5v5"])
def test_all_that_is_offered_can_be_chosen(played, kind):
    """Every available action of the pool's bots is in the format's list, and every valid target has a number."""
    config, layout, seen = played[kind]
    known = {a.id for a in actions_for(config)}
    offered = set(np.unique(seen.available).tolist()) - {0}
    assert offered <= known, [layout.actions[i].name for i in offered - known]
    discrete = choices_of("discrete", config, layout)
    numbers = {(e.action, e.unit) for e in discrete.entries}
    for action in (a for a in actions_for(config) if a.id in offered):
        if any(unit >= 0 for known_id, unit in numbers if known_id == action.id):
            here = (seen.available == action.id).any(-1)
            valid = np.flatnonzero(seen.target_mask[..., int(action.mask), :][here].any(0))
            assert {(action.id, unit) for unit in valid.tolist()} <= numbers, action.name


def test_a_number_means_its_entry():
    layout = Layout(MID)
    discrete = choices_of("discrete", MID, layout)
    available = np.zeros((1, 30), np.uint16)
    names = {a.name: a.id for a in layout.actions}
    available[0, :3] = NOOP, names["move"], names["attack"]
    targets = np.zeros((1, 4, layout.units), np.uint8)
    targets[0, 0, 5] = 1
    seen = ActionInputs(available, targets)
    allowed = [discrete.entries[n] for n in np.flatnonzero(discrete.mask(seen)[0])]
    assert [(e.name.split()[0], e.unit) for e in allowed] == [("noop", -1), *[("move", -1)] * len(AIMS), ("attack", 5)]
    for number, entry in enumerate(discrete.entries):
        orders, fine = discrete.orders(np.array([[number]]), seen)
        assert fine[0] == (entry in allowed)
        if fine[0]:
            assert available[0, orders[0, ActionPart.SLOT]] == entry.action
            assert orders[0, ActionPart.UNIT] == max(entry.unit, 0)
            assert (orders[0, ActionPart.OFFSET_X], orders[0, ActionPart.OFFSET_Y]) == (entry.x, entry.y)
        else:
            assert orders[0, ActionPart.SLOT] == 0  # noop


def test_the_offsets_are_eight_directions():
    assert len(set(AIMS)) == 17 and all(0 <= v < 9 for aim in AIMS for v in aim) and AIMS[0] == (MIDDLE, MIDDLE)


def test_scripted_actions_are_not_offered():
    names = {a.name for a in actions_for(TEAM.model_copy(update={"scripted_actions": ["glyph"], "buyback": False}))}
    assert not names & {"glyph", "buyback", "none"} and {"noop", "attack", "shrine", "lion_impale"} <= names
    assert "axe_berserkers_call" not in names


def test_another_form_is_refused():
    with pytest.raises(ValueError, match="'native', 'factored', 'discrete', not 'words'"):
        choices_of("words", MID, Layout(MID))
