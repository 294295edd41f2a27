"""Plans as files: what is read, what is refused and in which words, what a digest is of."""

import time
import tracemalloc

import pytest

from five.agent.surgery import Plan
from five.agent.surgery.steps import STEPS
from five.agent.surgery.strict_yaml import MAX_BYTES, parse_yaml
from tests.agent.surgery.agents import agent, plan

TEXT = """
name: bigger-core
parent: 0123456789abcdef
warm_up_versions: 4
bounds: {mean_kl: 0.02}
steps:
- kind: grow_lstm
  to: 256
  scale: 0.001
- {kind: widen, layer: unit_hidden, to: 96}
- kind: add_observations
  fields: [global.time, items]
  prior:
    global.time: {mean: 1.0, std: 0.5}
"""


def test_plan_yaml_round_trip() -> None:
    of = Plan.from_yaml(TEXT)
    assert [step.kind for step in of.steps] == ["grow_lstm", "widen", "add_observations"]
    assert of.bounds.mean_kl == 0.02 and of.hold is False
    again = Plan.from_yaml(of.to_yaml())
    assert again == of and again.digest == of.digest
    assert Plan.from_values(of.model_dump(mode="json")).digest == of.digest
    assert Plan.from_yaml(TEXT.encode()).digest == of.digest


def test_yaml_has_the_keys_in_the_order_of_the_docs() -> None:
    lines = Plan.from_yaml(TEXT).to_yaml().splitlines()
    assert [line.split(":")[0] for line in lines if line[0] not in " -"] == [
        "name", "parent", "steps", "warm_up_versions", "bounds"]
    assert [line for line in lines if line.startswith("- ")] == [
        "- kind: grow_lstm", "- kind: widen", "- kind: add_observations"]


def test_five_errors_are_named() -> None:
    with pytest.raises(ValueError, match="unknown key") as error:
        Plan.from_values({"name": "a", "parent": "0" * 16, "steps": [{"kind": "grow_lstm", "to": 8}],
                          **{f"extra{i}": i for i in range(7)}})
    assert str(error.value).count("unknown key") == 5


def test_digest_covers_content_and_is_stable() -> None:
    of = Plan.from_yaml(TEXT)
    assert of.digest == Plan.from_yaml(TEXT.replace("steps:", "# a comment\nsteps:")).digest
    for change in (("256", "257"), ("bigger", "larger"), ("0.02", "0.03"), ("versions: 4", "versions: 5")):
        assert Plan.from_yaml(TEXT.replace(*change)).digest != of.digest
    # Runs store digests, so a new field must not change those of plans that do not use it.
    assert of.digest == "7a27a18cae7707ffe23ff1f80c18aaa79b349471a9b1879ea587cc79832e3e4b"


@pytest.mark.parametrize(("text", "words"), [
    ("", "must be a mapping"), ("[1, 2]", "must be a mapping"), ("name: {", "line 1"), ("\x00", "invalid YAML"),
    (TEXT.replace("bounds", "bound"), r"bound: unknown key; did you mean 'bounds'\?"),
    (TEXT.replace("mean_kl", "mean_lk"), r"bounds\.mean_lk: unknown key; did you mean 'mean_kl'\?"),
    (TEXT.replace("scale", "scales"), r"steps\[0\]\.scales: unknown key; did you mean 'scale'\?"),
    (TEXT.replace("grow_lstm", "grow_lstn"), r"unknown kind of step 'grow_lstn'; did you mean 'grow_lstm'\?"),
    (TEXT.replace("kind: grow_lstm", "sort: grow_lstm"), r"steps\[0\]: kind is required"),
    (TEXT.replace("unit_hidden", "unit_hiden"), r"steps\[1\]\.layer"),
    (TEXT.replace("bigger-core", "../../etc/passwd"), "name"), (TEXT.replace("bigger-core", "Bigger"), "name"),
    (TEXT.replace("bigger-core", "x" * 64), "name"), (TEXT.replace("0123456789abcdef", "zz"), "parent"),
    (TEXT.replace("to: 256", "to: 1000000000000"), r"steps\[0\]\.to"), (TEXT.replace("to: 256", "to: x"), "to"),
    (TEXT.replace("0.001", ".nan"), "scale"), (TEXT.replace("0.001", "0"), "scale"),
    (TEXT.replace("to: 96", "to: 99999999"), "unit_hidden 99999999: at most 65536"),
    (TEXT + "name: again\n", "duplicate key 'name'"),
    (TEXT.replace("name:", "name: &a"), "anchors"), ("a: *b", "aliases"), ("name: !!python/object:os.system x", "tags"),
    ("a: " + "[" * 40 + "]" * 40, "nested deeper"), (TEXT.replace("0.02", "1e400"), "mean_kl"),
    ("steps: []\nname: x\nparent: 0123456789abcdef", "steps"), ("1: 2", "keys must be strings"),
    (TEXT + "- {kind: game, values: {kills_to_win: .inf}}\n", "values must be numbers"),
    (TEXT + f"- {{kind: game, values: {{kills_to_win: 0x{'f' * 6000}}}}}\n", "not an integer"),
    (TEXT.replace("to: 256", "to: true"), r"steps\[0\]\.to"), (TEXT.replace("to: 256", "to: 256.0"), r"steps\[0\]\.to"),
    (TEXT + "hold: yes\n", "hold: Input should be a valid boolean"), (TEXT.replace("0.001", "1_0"), "scale"),
    (TEXT + "- {kind: add_observations, fields: [a.b], prior: {b: {std: 1e200}}}\n", "std"),
    ("a: " + "9" * 60000, "."), ("--- a\n--- b", "line 2"),
])
def test_invalid_plan_is_rejected_with_its_place(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as error:
        Plan.from_yaml(text)
    assert len(str(error.value)) < 1500


def test_yaml_bomb_is_rejected_quickly() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    tracemalloc.start()
    begin = time.monotonic()
    for bomb in ("\n".join(levels), "x: " + "a" * (MAX_BYTES + 1), "[" * 5000, "? " * 5000, "{a: " * 5000,
                 "- " * 20000):
        with pytest.raises(ValueError):
            parse_yaml(bomb)
    assert time.monotonic() - begin < 30 and tracemalloc.get_traced_memory()[1] < 64 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("step", [
    {"kind": "widen", "layer": "lstm_input", "to": 65536}, {"kind": "grow_lstm", "to": 65536},
    {"kind": "widen", "layer": "unit_hidden", "to": 65536}])
def test_oversized_model_is_rejected_before_allocation(step: dict) -> None:
    spec = agent(1, model={"lstm": 8192, "unit": 4096, "unit_hidden": 4096})
    of = plan(spec, step)
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"step 1 of plan test .* a model of [\d,]+ parameters: at most 300,"):
        of.target(spec, max_parameters=300_000_000)
    assert tracemalloc.get_traced_memory()[1] < 256 << 20
    tracemalloc.stop()
    big = plan(agent(1), {"kind": "grow_lstm", "to": 65536})
    with pytest.raises(ValueError, match="at most 1,000,000,000 are allowed"):
        big.target(agent(1))


@pytest.mark.parametrize(("step", "words"), [
    ({"kind": "widen", "layer": "unit", "to": 8}, "has 8 outputs"),
    ({"kind": "widen", "layer": "key", "to": 9}, "key 9: it is a slice"),
    ({"kind": "grow_lstm", "to": 24}, "it has 24 units"),
    ({"kind": "embedding", "space": "item", "to": 3}, "width is 3 already"),
    ({"kind": "add_ids", "rows": {"item": 20}}, "item has 256 rows"),
    ({"kind": "split_head", "head": "unit.ally"}, "has its own parameters"),
    ({"kind": "add_observations", "fields": ["units.position"]}, "units.position: only what is left out .*global.time"),
    ({"kind": "add_observations", "fields": ["global.time"], "prior": {"global.tim": {}}}, "prior for global.tim"),
    ({"kind": "remove_inputs", "fields": ["global.time"]}, "left out already"),
    ({"kind": "add_observations", "fields": ["items.charges"]}, "only what is left out .*global.time, items"),
    ({"kind": "remove_inputs", "fields": ["items.charges"]}, "items.charges is left out already"),
    ({"kind": "remove_inputs", "fields": ["units.unit"]}, "it says whether a slot is taken"),
    ({"kind": "remove_inputs", "fields": ["unit.position"]}, "did you mean 'units.position'"),
    ({"kind": "remove_inputs", "fields": ["abilities"], "constants": {"units.position": 1}}, "constant for units"),
    ({"kind": "slots", "slots": {"wards": 1}}, "wards is 1 already"),
    ({"kind": "slots", "slots": {"buildings": 40}}, "buildings"),
    ({"kind": "add_actions", "actions": ["shrine"]}, "shrine: it is offered already"),
    ({"kind": "game", "values": {"neutrals": True}}, "already have these values"),
    ({"kind": "game", "values": {"nothing.there": 1}}, "unknown key nothing.there"),
    ({"kind": "game", "values": {"neutrals": "perhaps"}}, "neutrals"),
    ({"kind": "game", "values": {"heroes_per_team": 5}}, "heroes_per_team"),
    ({"kind": "game", "values": {"observation.minimap": 4}}, "change the network's inputs"),
    ({"kind": "game", "values": {"observation.allied_creeps": 6}}, "change the network's inputs"),
    ({"kind": "game", "values": {"observation.allied_creeps": 4, "observation.wards": 2}}, "use the steps for slots"),
    ({"kind": "game", "values": {"observation.mirror_dire": True}, "anneal_versions": 3}, "cannot be annealed"),
    ({"kind": "game", "values": {"frameskip": 8}, "anneal_versions": 3}, "frameskip cannot be annealed"),
])
def test_step_that_does_not_fit_is_named(step: dict, words: str) -> None:
    spec = agent(1, {"omit": ("global.time", "items")}, {"split_heads": ("unit.ally",)})
    of = plan(spec, {"kind": "widen", "layer": "set", "to": 6}, step)
    with pytest.raises(ValueError, match=f"step 2 of plan test: .*{words}"):
        of.target(spec)


def test_plan_for_another_schema_is_rejected() -> None:
    spec = agent(1)
    of = plan(spec, {"kind": "widen", "layer": "set", "to": 6})
    with pytest.raises(ValueError, match=rf"applies to schema {spec.schema}, but .*derive the plan again"):
        of.target(of.target(spec))


def test_annealed_changes_are_not_part_of_the_surgery() -> None:
    spec = agent(1, buyback=False, scripted_actions=["glyph"])
    of = plan(spec, {"kind": "add_actions", "actions": ["glyph", "buyback"], "anneal_versions": 40},
              {"kind": "game", "values": {"neutrals": False}, "anneal_versions": 20},
              {"kind": "game", "values": {"runes": False}})
    after = of.target(spec)
    assert after.game.scripted_actions == ["glyph"] and not after.game.buyback and after.game.neutrals
    assert not after.game.runes
    assert of.deferred_anneals(spec) == [({"buyback": True, "scripted_actions": []}, 40), ({"neutrals": False}, 20)]


def test_every_step_has_kind_and_docstring() -> None:
    assert len(STEPS) == 10
    for kind, step in STEPS.items():
        assert step.model_fields["kind"].default == kind and step.__doc__
