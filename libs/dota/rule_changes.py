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
    ("creeps of the side lanes walk faster or slower for their first seconds until 7:30, so that waves meet between "
     "the towers; the Dire's Ancient is wider",
     "a tower that creeps took alone pays the team; neutral creeps that are not ancient pay 5 % less (7.19: 10 %)",
     "attacks without a swing roll crits; procs and chain lightning cannot be evaded, and lightning strikes its first "
     "target at once",
     "a channel's last tick happens; intervals keep their exact rate; instant items end channels unless their files "
     "say otherwise",
     "magic barriers take damage before the resistance; a mere loss of health answers, ends and restores nothing",
     "toggled abilities and items end with their hero's death; Voodoo Restoration is free to switch off and ends "
     "without mana",
     "a fear or taunt that ends leaves no unit standing still; Shadow Dance, Smoke and Blur hide from every sight",
     "a hex replaces the base speed only; links and Earth Spike grow with the cast range",
     "an effect that a talent replaces renews the earlier one; a second bash of another kind does nothing",
     "changed abilities: Anchor Smash, Arcane Aura, Assassinate, Backstab, Battle Hunger, Blink Strike, Chain Frost, "
     "Corrosive Skin, Counter Helix, Culling Blade, Dark Pact, Death Pulse, Death Ward, Echo Slam, Essence Shift, Eye "
     "of the Storm, Fissure, Flak Cannon, Freezing Field, Frost Armor, Frostbite, Ghost Shroud, Headshot, Maledict, "
     "Mana Drain, Paralyzing Cask, Pounce, Requiem of Souls, Rocket Barrage, Scream of Pain, Shadow Dance, "
     "Shadow Strike, Shadowraze, Shrapnel, Side Gunner, Smoke Screen, Spirit Siphon, Tricks of the Trade",
     "changed items: Aegis, Aeon Disk, Basher, Blade Mail, Bloodstone, Crimson Guard, Drum of Endurance, Ethereal "
     "Blade, Force Staff, Glimmer Cape, Guardian Greaves, Hand of Midas, Holy Locket, Hurricane Pike, Linken's Sphere, "
     "Lotus Orb, Mask of Madness, Medallion of Courage, Mekansm, Phase Boots, Pipe of Insight, Ring of Basilius, "
     "Scythe of Vyse, Shadow Amulet, Shadow Blade, Silver Edge, Solar Crest, Spirit Vessel, Tranquil Boots, Vladmir's "
     "Offering, Wind Lace",
     "people may aim spells for units or places at the ground"),
    ("7.21d: a quarter of a fountain's attacks cannot miss",),
    ("before the horn, a unit that has not walked yet walks to the middle of the map when it is ordered to",),
    ("observations do not give away where the next power rune appears, and hold the spots of runes from the start",
     "attacks on own units are offered exactly where these can be denied, Hand of Midas not against ancients, and a "
     "Moon Shard for heroes of one's own team only",
     "before the horn, charges come back, wards and summons end, and buildings are invulnerable without a glyph",
     "a 1v1 in which both sides lose in the same frame is drawn"),
)
"""What each revision changed, oldest first."""
REVISION = len(CHANGES)


def changes_since(revision: int) -> Sequence[str]:
    """Return what changed after a revision, oldest first."""
    return [change for changes in CHANGES[max(revision, 0):] for change in changes]
