"""Every modifier with a stated duration of an ability or item: it lasts for that time, shortened by the bearer's status
resistance for enemies' modifiers, and only the dispels that the data allow remove it."""

from typing import Any

import pytest

from tests.dota import effect_nodes
from tests.dota.fight import ENEMY, ITEMS, MATE, SECOND, Fight, Sight, case, definition, helpers, rank_of, ways
from tests.dota.fight import ranged as is_ranged
from tests.dota.scenes.arena import FRAME

AROUND = {"t": "circle", "r": 9000}
OF_AURA = 16  # among a modifier's flags
# Modifiers that status resistance does not shorten: links, counts of attacks, forced motion.
UNRESISTED = {"stat_drain", "on_hit_stat_steal", "stack_gain", "knockback", "force_push", "pull_to_caster", "leap",
              "aura", "respawn_add", "attack_stacks"}
# Immunity cannot be dispelled; hidden units cannot be reached.
OUT_OF_REACH = {"spell_immune", "banish", "once_per_unit"}
# Not put on anybody, or as long as something else is.
NOT_BORNE = {"vision", "terrain_block", "random_explosions", "spirits", "summon", "periodic_strike", "mana_drain",
             "drain", "random_target_hits", "plant_tree", "ground_area", "missile_unit"}
# Modifiers that this fight does not show, and their tests.
UNSEEN = {
    ("axe_culling_blade", "mod"): "after a kill: tests/dota/test_tooltips_axe.py",
    ("necrolyte_heartstopper_aura", "stack_gain"): "after a kill: tests/dota/test_abilities_axe_to_necrolyte.py",
    ("nevermore_shadowraze1", "stack_gain"): "counted: tests/dota/test_abilities_nevermore.py",
    ("nevermore_shadowraze2", "stack_gain"): "counted: tests/dota/test_abilities_nevermore.py",
    ("nevermore_shadowraze3", "stack_gain"): "counted: tests/dota/test_abilities_nevermore.py",
    ("lina_fiery_soul", "mod"): "after a spell: tests/dota/test_abilities_lina.py",
    ("item_dust", "mod"): "on the invisible: tests/dota/test_matrix_radius.py",
    ("item_aegis", "hot"): "when it expires: tests/dota/test_tooltips_items.py",
    ("item_aegis", "mana_over_time"): "when it expires: tests/dota/test_tooltips_items.py",
    ("item_tango", "hot"): "from a tree: tests/dota/test_effects_items.py",
    ("item_tango_single", "hot"): "from a tree: tests/dota/test_effects_items.py",
    ("item_diffusal_blade", "root"): "of creeps",
    ("item_shadow_amulet", "invis"): "without an end: tests/dota/test_effects_whole.py",
    ("item_aeon_disk", "low_hp_guard"): "at low health: tests/dota/test_effects_whole.py",
}


def lasting(subject: str) -> list[effect_nodes.EffectNode]:
    """Return its nodes with modifiers of a stated duration that this fight shows."""
    return [n for n in effect_nodes.nodes(definition(subject)) if "dur" in n.node and not n.upgrade()
            and n.primitive not in NOT_BORNE and (subject, n.primitive) not in UNSEEN]


SUBJECTS = [(s, w) for s, w in ways() if lasting(s)]
CASES = [case(*s) for s in SUBJECTS]


@pytest.fixture(scope="module")
def dispelling(core: Any) -> dict[str, Any]:
    """Tables in which the helpers' first ability is a basic dispel of everybody, the second a strong one."""
    basic, strong = ([{"p": "dispel", "to": whom, "shape": AROUND, "kind": kind} for whom in ("allies", "enemies")]
                     for kind in ("basic", "strong"))
    return helpers(core, basic, strong)


def borne(fight: Fight, subject: str, way: str, keep: bool = False) -> list[tuple[effect_nodes.EffectNode, Sight]]:
    """Return the nodes with modifiers of a stated duration and their records; fails when one did not appear."""
    nodes = effect_nodes.nodes(definition(subject))
    seen = fight.everything(keep)
    found = [(nodes[s.index], s) for s in seen.values()
             if "dur" in nodes[s.index].node and nodes[s.index].primitive not in NOT_BORNE
             and not (s.flags & OF_AURA and nodes[s.index].primitive == "aura")]
    other = {"mate": "enemy"}.get(way, "ally")  # targets that this test does not cover
    for n in lasting(subject):
        if n.node.get("if") == other or (way == "ranged" and "double_attack" in n.way):
            continue
        assert [1 for m, _ in found if m.index == n.index], f"{n.primitive} of {subject} was never seen"
    return found


@pytest.mark.parametrize("resists", [False, True], ids=["plain", "resisted"])
@pytest.mark.parametrize(("subject", "way"), CASES)
def test_modifier_lasts_its_stated_duration(core: Any, dispelling: dict[str, Any], subject: str, way: str,
                                            resists: bool) -> None:
    """Exact to the frame. Satanic shortens enemies' modifiers on its bearer by 30 %, and none of its own side."""
    fight = Fight(core, dispelling, subject, way, far=True)
    if resists:
        for hero in (0, MATE, ENEMY, SECOND):
            assert fight.world.give_item(hero, "item_satanic")
    d, rank = definition(subject), rank_of(subject)
    shorter = 1 - ITEMS["item_satanic"]["stats"]["status_res_pct"] / 100 if resists else 1
    for n, sight in borne(fight, subject, way):
        key = "hold" if "hold" in n.node else "dur"
        if "dur_ranged" in n.node and is_ranged(fight.hero):
            key = "dur_ranged"
        if "dur_vs_ranged" in n.node and is_ranged(fight.names[sight.bearer]):
            key = "dur_vs_ranged"
        whole = effect_nodes.number(d, n.node[key], rank)
        if sight.bearer in (ENEMY, SECOND) and n.primitive not in UNRESISTED:
            whole *= shorter
        assert whole - 1.5 * FRAME <= sight.left <= whole + 2e-3, (n.primitive, n.index, sight.left, whole)


@pytest.mark.parametrize(("subject", "way"), CASES)
def test_a_dispel_removes_dispellable_modifiers(core: Any, dispelling: dict[str, Any], subject: str,
                                                way: str) -> None:
    """An enemy's dispel removes buffs, a friend's removes debuffs. A basic one removes `dispellable` modifiers, a
    strong one `yes_strong` as well; none removes `no`, and no side removes its own effects."""
    fight = Fight(core, dispelling, subject, way, far=True)
    says = definition(subject).get("dispellable", "yes")
    for n, sight in borne(fight, subject, way, keep=True):
        for by in (MATE, SECOND):
            for which, kinds in enumerate((("yes",), ("yes", "yes_strong"))):
                fight.world.restore(sight.snapshot)
                assert fight.bears(sight)
                if by == sight.bearer:
                    continue  # a cast of one's own may end it
                assert fight.help(by, which)
                against = by == SECOND and n.primitive not in OUT_OF_REACH and not sight.flags & OF_AURA
                assert fight.bears(sight) == (not against or says not in kinds), (n.primitive, n.index, by, which)
