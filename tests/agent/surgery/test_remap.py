"""New weights: their distribution, their seeds, and the entries that stay zero."""

import hashlib

import numpy as np
import pytest

from five.agent.surgery import migrate_policy
from tests.agent.surgery.agents import agent, plan, trained


def generator(text: str) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")))


def test_new_weights_follow_from_plan_step_and_tensor() -> None:
    """A later release migrates stored versions again and has to give them the same bits."""
    spec = agent(1)
    of = plan(spec, {"kind": "add_ids", "rows": {"item": 300}}, {"kind": "widen", "layer": "unit", "to": 11},
              {"kind": "grow_lstm", "to": 30, "seed": 7, "scale": 0.5})
    version = trained(spec)
    made = migrate_policy(of, spec, version)
    table = "embeddings.tables.item"
    rows = 300 - len(version[table])
    np.testing.assert_array_equal(made[table][-rows:],
                                  generator(f"{of.digest}/1/0/{table}").standard_normal((rows, 3), np.float32))
    for tower in ("allied_units", "enemy_units"):
        name = f"trunk.towers.{tower}.second.weight"
        sampled = generator(f"{of.digest}/2/0/{name}").random((3, 12), np.float32)
        np.testing.assert_array_equal(made[name][8:], (sampled * 2 - 1) * np.float32(12**-0.5), err_msg=name)
    random = generator(f"{of.digest}/3/7/core.lstm.weight_hh_l0")
    columns, gates = (np.float32(0.5) * (random.random(shape, np.float32) * 2 - 1) for shape in ((120, 6), (24, 30)))
    grown = made["core.lstm.weight_hh_l0"].reshape(4, 30, 30)
    np.testing.assert_array_equal(grown[:, :24, 24:], columns.reshape(4, 30, 6)[:, :24])
    np.testing.assert_array_equal(grown[:, 24:], gates.reshape(4, 6, 30))


def test_new_outputs_have_the_scale_of_a_new_layer() -> None:
    spec = agent(1)
    of = plan(spec, {"kind": "widen", "layer": "auxiliary_hidden", "to": 200},
              {"kind": "add_ids", "rows": {"modifier": 1500}}, {"kind": "embedding", "space": "unit", "to": 12})
    version = trained(spec)
    made = migrate_policy(of, spec, version)
    for tensor in ("weight", "bias"):
        new = made[f"auxiliary.win_probability.0.{tensor}"][8:]
        scale = 24**-0.5
        assert new.min() == pytest.approx(-scale, rel=0.1) and new.max() == pytest.approx(scale, rel=0.1)
        assert -scale <= new.min() < new.max() <= scale and abs(new.mean()) < 0.2 * scale
    modifiers, units = "embeddings.tables.modifier", "embeddings.tables.unit"
    for new in (made[modifiers][len(version[modifiers]):], made[units][1:, 4:]):
        assert new.std() == pytest.approx(1, abs=0.1) and abs(new.mean()) < 0.1 and np.abs(new).max() < 6


def test_weights_on_new_outputs_start_at_zero() -> None:
    spec = agent(1)
    of = plan(spec, {"kind": "widen", "layer": "unit_hidden", "to": 15}, {"kind": "widen", "layer": "key", "to": 8})
    version = trained(spec)
    made = migrate_policy(of, spec, version)
    second = made["trunk.towers.enemy_heroes.second.weight"]
    assert second.any() and not second[:, 12:].any()
    for head in ("primary", "unit", "teleport"):
        for tensor in ("weight", "bias"):
            name = f"heads.{head}.{tensor}"
            np.testing.assert_array_equal(made[name][:6], version[name])
            assert len(made[name]) == 8 and not made[name][6:].any(), f"{name}: rows for the longer key"


def test_row_none_stays_zero() -> None:
    spec = agent(1)
    of = plan(spec, {"kind": "embedding", "space": "item", "to": 7}, {"kind": "widen", "layer": "key", "to": 8})
    made = migrate_policy(of, spec, trained(spec))
    for table in ("item", "action"):
        new = made[f"embeddings.tables.{table}"]
        assert not new[0].any() and new[1:].all(), table


def test_unchanged_tensors_are_the_same_arrays() -> None:
    spec = agent(1)
    version = trained(spec)
    of = plan(spec, {"kind": "split_head", "head": "unit.ally"}, {"kind": "widen", "layer": "set", "to": 9})
    made = migrate_policy(of, spec, version)
    changed = {name for name in version if made[name] is not version[name]}
    assert changed and all(made[name].shape != version[name].shape for name in changed)
    clone, parent = made["heads.unit_splits.ally.weight"], made["heads.unit.weight"]
    np.testing.assert_array_equal(clone, parent)
    assert not np.shares_memory(clone, parent), "training the clone in place would change its parent"
