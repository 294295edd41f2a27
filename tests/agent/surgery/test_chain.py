import json

import numpy as np
import pytest

from five.agent.surgery import AgentSpec, AppliedMigration, MigrationChain, migrate_policy
from tests.agent.surgery.agents import agent, plan, trained


def three() -> tuple[list[AppliedMigration], list[AgentSpec]]:
    """An input is removed, a layer grows, the game changes, and the input is added again."""
    specs = [agent(1, {"omit": ("global.day",)})]
    links = []
    for i, steps in enumerate([
            [{"kind": "remove_inputs", "fields": ["global.time"]}],
            [{"kind": "game", "values": {"neutrals": False}}],
            [{"kind": "widen", "layer": "set", "to": 9}],
            [{"kind": "add_observations", "fields": ["global.time", "global.day"]}]]):
        of = plan(specs[-1], *steps, name=f"plan-{i}")
        links.append(AppliedMigration(of, specs[-1]))
        specs.append(of.target(specs[-1]))
    return links, specs


def test_every_schema_migrates_to_the_newest() -> None:
    links, specs = three()
    chain = MigrationChain(links, [link.plan.digest for link in links])
    assert chain.newest == specs[-1].schema and chain.schemas == tuple(s.schema for s in specs)
    assert specs[1].schema == specs[2].schema, "a game change keeps the schema"
    version = trained(specs[0])
    made = version
    for link, spec in zip(links, specs, strict=False):
        got = chain.migrate_to_newest(made, spec.schema)
        assert {n: a.shape for n, a in got.items()} == specs[-1].tensor_shapes()
        made = migrate_policy(link.plan, link.old, made)
    for name, array in chain.migrate_to_newest(version, specs[0].schema).items():
        np.testing.assert_array_equal(array, made[name])
    assert chain.migrate_to_newest(made, chain.newest).keys() == made.keys()
    assert chain.migrations_from(chain.newest) == ()
    assert len(chain.migrations_from(specs[0].schema)) == 4 and len(chain.migrations_from(specs[1].schema)) == 2


def test_repeated_schema_counts_at_its_last_position() -> None:
    first = agent(1)
    away = plan(first, {"kind": "remove_inputs", "fields": ["global.time"]}, name="away")
    middle = away.target(first)
    back = plan(middle, {"kind": "add_observations", "fields": ["global.time"]}, name="back")
    assert back.target(middle).schema == first.schema
    chain = MigrationChain([AppliedMigration(away, first), AppliedMigration(back, middle)])
    version = trained(first)
    assert all(chain.migrate_to_newest(version, first.schema)[n] is version[n] for n in version)
    assert len(chain.migrations_from(middle.schema)) == 1


def test_edited_replaced_or_missing_plan_is_rejected() -> None:
    links, _ = three()
    digests = [link.plan.digest for link in links]
    edited = AppliedMigration(links[2].plan.model_copy(update={"warm_up_versions": 99}), links[2].old)
    with pytest.raises(ValueError, match="plan 3 of the chain, plan-2, .*edited or replaced"):
        MigrationChain([*links[:2], edited, links[3]], digests)
    with pytest.raises(ValueError, match="plan 4 of the chain, .*, is missing"):
        MigrationChain(links[:3], digests)
    with pytest.raises(ValueError, match="plan-3 was never applied"):
        MigrationChain(links, digests[:3])
    text = json.loads(links[2].to_json())
    text["plan"]["steps"][0]["to"] = 10
    with pytest.raises(ValueError, match="plan-2 was edited after it was applied"):
        AppliedMigration.from_json(json.dumps(text))
    assert AppliedMigration.from_json(links[2].to_json()) == links[2]
    for bad in ("", "[]", "{}", '{"plan": 1, "old": 2, "digest": ""}'):
        with pytest.raises(ValueError, match="not an applied plan"):
            AppliedMigration.from_json(bad)


def test_second_plan_on_one_parent_is_rejected() -> None:
    links, specs = three()
    other = plan(specs[2], {"kind": "widen", "layer": "unit", "to": 30}, name="other")
    with pytest.raises(ValueError, match="plan other is a second plan on schema .*: plan-1 was applied to it, "
                                         f"and the run is at {specs[-1].schema}"):
        MigrationChain(links).append(other, specs[2])
    with pytest.raises(ValueError, match="plan plan-3 is for schema .*, but plan 1 led to"):
        MigrationChain([links[0], links[3]])
    following = plan(specs[-1], {"kind": "widen", "layer": "unit", "to": 30}, name="next")
    longer = MigrationChain(links).append(following, specs[-1])
    assert len(longer.links) == 5


def test_version_of_another_run_is_rejected() -> None:
    links, specs = three()
    chain = MigrationChain(links)
    with pytest.raises(ValueError, match="is not in this run's chain"):
        chain.migrate_to_newest({}, agent(5).schema)
    with pytest.raises(ValueError, match="do not match schema"):
        chain.migrate_to_newest({"a": np.zeros(1)}, specs[0].schema)
    assert MigrationChain([]).migrate_to_newest({"a": np.zeros(1)}, "anything") and MigrationChain([]).newest == ""


@pytest.mark.parametrize("wards", range(2, 6))
def test_release_with_another_schema_is_rejected(wards: int) -> None:
    links, _ = three()
    other = AppliedMigration(links[0].plan, agent(1, {"wards": wards}))
    with pytest.raises(ValueError, match="use the release of the run"):
        MigrationChain([other])
