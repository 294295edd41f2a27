"""Revisions of the game's rules: what changed in the game under a run that an earlier release started.

A release that changes what happens in a game, in either patch, adds a revision. Corrections of crashes and of what is
only shown need none.
"""

from collections.abc import Sequence

CHANGES: tuple[tuple[str, ...], ...] = (
    ("the first rules",),
    ("lane creeps attack those who attack heroes, then those who attack anyone, then the nearest; an attack order on "
     "an own creep sheds their aggro",
     "physical spells are amplified, and do nothing to ethereal units",
     "lifesteal heals by the damage of a blow, not by the health that was left",
     "armor corruption counts for its own hit, reaches buildings, and does not add up",
     "auras last half a second longer; Assault Cuirass and Crimson Guard reach buildings",
     "stacks of Essence Shift and Heartstopper Aura end one by one; a death under Essence Shift keeps an agility",
     "Reaper's Scythe claims kills and delays the return",
     "invisible heroes do not attack without an order, and vanishing evades projectiles; casts do not end Smoke",
     "leashes and roots end teleports; Force Staff breaks leashes",
     "Mekansm, Guardian Greaves and Crimson Guard reach a unit once in a time; only the closest Urn gains a charge",
     "attackers out of the fog are seen for two seconds",
     "damage by Roshan and fountains disables Blink Dagger and Heart of Tarrasque, mere loss of health does not; Heart "
     "rests for 5 s on melee heroes and amplifies its own regeneration",
     "two Nethertoxins of one Viper count once, a target bears one Spirit Siphon, both ways of a Plasma Field slow",
     "changed numbers or targets: Aegis, Basher, Bloodstone, Bottle, Dust, Enchant Totem, Eye of the Storm, Frost "
     "Shield, Frostbite, Heartstopper Aura, Shrapnel, Sinister Gaze, Unstable Current; attributes are at least 1"),
)
"""What each revision changed, oldest first."""
REVISION = len(CHANGES)


def changes_since(revision: int) -> Sequence[str]:
    """Return what changed after a revision, oldest first."""
    return [change for changes in CHANGES[max(revision, 0):] for change in changes]
