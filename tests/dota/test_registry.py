"""Ids never change: the file keeps its seals, contains both patches, and additions come last."""

import json

import numpy as np
import pytest

from dota import naming, registry
from dota.config import GameConfig
from dota.registry import SPACES, Registry, digest
from dota.spaces import ID_SPACES, PATCHES, Layout, TargetType, action_entries, actions_of, vocabulary
from dota.tables import core_ids, load_tables, names_of
from dota.vec_game import Controller, VecGame
from tests.dota.watching import duel, field

# The first names of each space, as they were when ids became stable. These lines are never edited: an id that an
# agent has learned means the same for as long as there are agents.
FIRST = {"unit": (118, "758d4ba4764bcad3"), "animation": (8, "fefe91dd6d8ceef3"), "modifier": (338, "4cbe4f9ddff46154"),
         "ability": (373, "db35e6b195875c21"), "item": (167, "0bfe51ef38518fa7"), "pickup": (6, "e23bda3b2ad6265a"),
         "build": (18, "3f707d10c9da4c40"), "action": (154, "30c7ce92d105353b")}


def test_the_first_names_are_where_they_were() -> None:
    names = registry.load().names
    assert {space: (count, digest(names[space][:count])) for space, (count, _) in FIRST.items()} == FIRST


def test_every_name_of_every_patch_has_an_id_and_fits_its_space(core) -> None:
    known = registry.load()
    for patch in PATCHES:
        for space, names in names_of(patch, known).items():
            ids = known.ids(space, names)  # raises for a name that has none
            assert len(set(ids)) == len(ids)
            assert all(0 <= i < ID_SPACES[space] for i in ids)
            assert space == "action" or 0 not in ids
    assert max(known.ids("area", names_of("7.21d", known)["ability"])) < ID_SPACES["area"]


def test_names_are_only_added_behind() -> None:
    old = registry.load()
    new = old.with_names({"unit": ["npc_dota_new", *old.names["unit"][3:5]], "ability": ["a_first", "b_second"]})
    new.check()
    for space in SPACES:
        assert new.names[space][:len(old.names[space])] == old.names[space]
    assert new.names["unit"][-1] == "npc_dota_new" and new.names["ability"][-2:] == ("a_first", "b_second")
    assert new.ids("unit", ["npc_dota_new"]) == [len(old.names["unit"]) + 1]
    assert new.ids("ability", old.names["ability"]) == old.ids("ability", old.names["ability"])
    assert new.seals[:-1] == old.seals and new.with_names(old.names) is new
    assert registry.read(new.to_json()) == new


def test_the_file_equals_the_commands_output() -> None:
    assert registry.FILE.read_text() == registry.load().to_json()


@pytest.mark.parametrize(("damage", "said"), [
    ("moved", "the first 118 names of unit, sealed in step 1, changed"),
    ("gone", "the first 118 names of unit, sealed in step 1, changed"),
    ("twice", "unit has 'npc_dota_neutral_kobold' twice"),
    ("unsealed", "unit has unsealed names")])
def test_a_list_that_was_edited_by_hand_is_refused(damage: str, said: str) -> None:
    old = registry.load()
    values = json.loads(Registry({**old.names}, old.seals[:1]).to_json())
    units = values["names"]["unit"][:118]
    assert "npc_dota_neutral_kobold" in units
    values["names"]["unit"] = {"moved": [units[1], units[0], *units[2:]], "gone": units[:-1],
                               "twice": [*units, "npc_dota_neutral_kobold"], "unsealed": [*units, "new"]}[damage]
    for space in SPACES:
        if space != "unit":
            values["names"][space] = values["names"][space][:FIRST[space][0]]
    with pytest.raises(ValueError, match=said):
        registry.read(json.dumps(values))


def test_a_name_without_an_id_is_reported_with_the_fix() -> None:
    with pytest.raises(ValueError, match=r"no item ids for item_new_one: append them with `python -m dota.naming"):
        registry.load().ids("item", ["item_blink", "item_new_one"])


def test_the_command_appends_missing_names(core, tmp_path, monkeypatch, capsys) -> None:
    """The same names are found again behind a shorter list, and a second time there is nothing to do."""
    full = registry.load()
    short = {space: names[:-2] for space, names in full.names.items()}
    seal = {space: [len(names), digest(names)] for space, names in short.items()}
    file = tmp_path / "ids.json"
    file.write_text(Registry(short, (seal,)).to_json())
    monkeypatch.setattr(registry, "FILE", file)
    registry.load.cache_clear()
    try:
        assert naming.main(["check"]) == 1 and registry.load().names == short
        assert naming.main(["append"]) == 0
        registry.load.cache_clear()
        found = registry.load()
        assert {s: sorted(n) for s, n in found.names.items()} == {s: sorted(n) for s, n in full.names.items()}
        assert all(found.names[space][:len(names)] == names for space, names in short.items())
        assert found.seals[0] == seal and len(found.seals) == 2
        assert "unit: 2 new" in capsys.readouterr().out
        assert naming.main(["check"]) == 0 and naming.main(["append"]) == 0
        assert "every name of the game data has an id" in capsys.readouterr().out
        assert naming.main(["remove"]) == 2
    finally:
        monkeypatch.undo()
        registry.load.cache_clear()


def test_other_target_type_in_a_patch_is_another_action() -> None:
    by_patch = {patch: {a.casts: a for a in actions_of(patch)} for patch in PATCHES}
    new, old = (by_patch[patch]["item_bloodstone"] for patch in ("7.21d", "7.19"))
    assert (new.name, new.target) == ("item_bloodstone", TargetType.NONE)
    assert (old.name, old.target) == ("item_bloodstone/point", TargetType.POINT)
    assert old not in actions_of("7.21d") and new not in actions_of("7.19")
    # Even when both are added in one go, and again when only the mask differs.
    entries = action_entries("7.19", ["item_bloodstone none enemy", "item_butterfly none attack"])
    assert "item_bloodstone/point point enemy" in entries and "item_butterfly/none none enemy" in entries
    entries = action_entries("7.19", ["item_butterfly none attack", "item_butterfly/none none ally"])
    assert "item_butterfly/none-enemy none enemy" in entries
    assert [a.id for a in vocabulary()] == list(range(len(vocabulary())))


def test_both_patches_share_a_layout_and_ids(core) -> None:
    """Shadow Fiend, his raze and his branches have the same ids in 7.19, although their table indices differ."""
    seen = {}
    for patch in PATCHES:
        game = VecGame(duel(patch=patch), 1, seed=3)
        game.controllers[:] = Controller.SCRIPTED
        for _ in range(220):
            game.step()
        ids = {name: set(field(game, block, name).ravel().tolist()) - {0}
               for block, name in (("abilities", "ability"), ("items", "item"), ("units", "unit"))}
        actions = {vocabulary()[i].name for i in game.obs["available"][0].ravel() if i}
        seen[patch] = (game.layout.hash, ids, actions)
    (hash_a, ids_a, actions_a), (hash_b, ids_b, actions_b) = seen.values()
    assert hash_a == hash_b == Layout(duel()).hash
    known = registry.load()
    for ids in (ids_a, ids_b):
        assert known.ids("ability", ["nevermore_shadowraze1"])[0] in ids["ability"]
        assert known.ids("unit", ["npc_dota_hero_nevermore"])[0] in ids["unit"]
    assert ids_a["unit"] == ids_b["unit"]
    assert {"noop", "move"} <= actions_a & actions_b


def test_the_core_refuses_ids_that_do_not_fit_its_tables(core) -> None:
    from dota.tables import core_layout, core_variant

    config = duel()
    variant = core_variant(config)
    for key, value, said in (("item", variant["ids"]["item"][:-1], "names of item"),
                             ("casts", ["" for _ in variant["ids"]["casts"]][:-1], "the vocabulary has"),
                             ("casts", ["no_such"] * len(variant["ids"]["casts"]), "casts 'no_such'")):
        with pytest.raises(ValueError, match=said):
            core.VecGame(core_layout(Layout(config)), [variant | {"ids": variant["ids"] | {key: value}}], 1, 0, 1)


def test_ids_do_not_depend_on_the_order_of_the_files(core) -> None:
    tables = load_tables("7.19")
    ids = core_ids("7.19")
    by_name = dict(zip(tables.items, ids["item"], strict=True))
    newer = dict(zip(load_tables("7.21d").items, core_ids("7.21d")["item"], strict=True))
    common = [name for name in by_name if name in newer]
    assert len(common) > 150 and all(by_name[name] == newer[name] for name in common)
    assert tables.items.index("item_blink") == 0 and any(
        tables.items.index(name) != load_tables("7.21d").items.index(name) for name in common)
    assert np.asarray(ids["item"]).max() < ID_SPACES["item"]
    assert GameConfig(patch="7.19").patch == "7.19"
