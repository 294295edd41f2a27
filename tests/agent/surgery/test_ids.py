"""Ids that a release adds use spare rows; beyond these, surgery adds rows."""

from collections.abc import Iterator

import pytest
import torch

from dota import omission, registry, spaces
from dota.config import FIELDS, ObservationConfig
from five.agent.model.policy import Policy
from five.agent.surgery import derive_plan, migrate_policy
from five.agent.surgery.check import check_plan
from five.agent.surgery.id_labels import id_labels
from five.agent.surgery.steps import observations, remove
from tests.agent.surgery.agents import agent, load, plan, recorded, trained


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Add one action, one ability and 100 items to the registry."""
    more = registry.load().with_names({
        "action": ["new_hero_new_spell unit enemy"], "ability": ["new_hero_new_spell"],
        "item": [f"item_new_{i}" for i in range(100)]})
    monkeypatch.setattr(registry, "load", lambda: more)
    for cached in (spaces.vocabulary, spaces.actions_of, id_labels):
        cached.cache_clear()
    yield
    for cached in (spaces.vocabulary, spaces.actions_of, id_labels):
        cached.cache_clear()


def test_new_ids_change_no_layout_or_schema(request: pytest.FixtureRequest) -> None:
    wide = {"id_rows": {"item": 400}}
    before = agent(1, model=wide)
    seen = before.layout.hash, before.schema, len(before.layout.actions)
    version = trained(before)
    request.getfixturevalue("later")
    after = agent(1, model=wide)
    assert (after.layout.hash, after.schema) == seen[:2]
    assert len(after.layout.actions) == seen[2] + 1
    policy = load(after, version)
    assert int(policy.heads.table.mask_class[seen[2]]) == 1, "what the new action aims at is known"


def test_ids_without_a_row_are_rejected(later: None) -> None:
    spec = agent(1)
    with pytest.raises(ValueError, match=r"have 268 item ids, the model has rows for 256.*add_ids, rows: {item: 268}"):
        Policy(spec.layout, spec.model)
    of = plan(spec, {"kind": "add_ids", "rows": {"item": 268}})
    made = migrate_policy(of, spec, trained(spec))
    assert made["embeddings.tables.item"].shape[0] == 268
    assert (made["embeddings.tables.item"][256:] != 0).all()
    assert torch.isfinite(load(of.target(spec), made).embeddings.table("item")).all()


def test_row_labels_come_from_the_registry() -> None:
    items = id_labels("item", 256)
    assert items[0] == "item:none" and items[1] == "item:item_blink" and items[-1] == "item:#255"
    actions = id_labels("action", 512)
    assert actions[:3] == ("action:none", "action:noop/none/attack", "action:move/point/attack")
    assert len(set(actions)) == 512 and id_labels("area", 512)[1] == id_labels("ability", 512)[1].replace(
        "ability:", "area:")


def test_new_field_is_added_by_surgery(monkeypatch: pytest.MonkeyPatch) -> None:
    """Field global.stock is patched to belong to generation 2, which came after the run began."""
    for later in list(omission.LATER):  # ignore fields that were really added later
        monkeypatch.delitem(omission.LATER, later)
    before = agent(1, {"omit": ("global.stock", "global.day")})
    version = trained(before)
    monkeypatch.setitem(omission.LATER, "global.stock", 2)
    run = agent(1, {"omit": ("global.day",), "generation": 1})
    assert run.schema == before.schema, "a run that began before sees what it saw"
    of = plan(run, {"kind": "add_observations", "fields": ["global.stock"]})
    for module in (observations, remove):
        monkeypatch.setattr(module, "FIELDS", 2)
    after = of.target(run)
    assert after.game.observation.generation == 2 and after.layout.omitted == ("global.day",)
    assert check_plan(of, run, version, recorded(run)).ok
    new = agent(1, {"omit": ("global.day",), "generation": 2})
    assert new.schema == after.schema and derive_plan(run, new, "later").target(run).schema == new.schema


def test_generation_counts_added_fields() -> None:
    assert max(omission.LATER.values(), default=1) == FIELDS == ObservationConfig().generation
    assert not set(omission.LATER) & set(omission.NEEDED)
    assert omission.left_out(("items",), FIELDS) == ("items",)
