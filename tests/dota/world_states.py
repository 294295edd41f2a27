"""World states of games (`InteractiveGame.world_state`), parsed and compared with the games."""

import json
import math
from collections.abc import Iterator
from typing import Any

from google.protobuf.message import Message

from dota.play import InteractiveGame
from dota.spaces import DATA
from five.protos.valve.bot_world_state_pb2 import CMsgBotWorldState
from tests.dota.playing import seen

TYPES = {"hero": 1, "creep": 3, "neutral": 4, "roshan": 5, "tower": 6, "barracks": 7, "shrine": 8, "fort": 9,
         "filler": 10, "fountain": 10, "courier": 11, "ward": 12, "summon": 0}
# Fields that name a unit which the message has to list. Events name units of earlier frames.
HANDLES = {"caster_handle", "attack_target_handle", "ability_target_handle"}
OWN_ONLY = ("reliable_gold", "unreliable_gold", "xp_needed_to_level", "last_hits", "denies", "net_worth",
            "ability_points", "buyback_cost", "buyback_cooldown")
OWN_ABILITY = ("level", "cooldown_remaining", "charges", "is_fully_castable", "is_toggled", "is_activated")
LOWEST, FOG_CELL, FOG_CELLS = -8320.0, 128.0, 130
IDLE, WALK, ATTACK_WINDUP, ATTACK_BACKSWING, CAST, _, CHANNEL, DEAD = range(8)


def numbers(kind: str) -> dict[int, str]:
    """Return the names of abilities, items or heroes of patch 7.21d by Valve's numbers."""
    found = json.loads((DATA / "dota-7.21d" / f"{kind}.json").read_text(encoding="utf-8"))[kind]
    return {entry["id"]: name for name, entry in found.items()}


ABILITIES, ITEMS, HEROES = numbers("abilities"), numbers("items"), numbers("heroes")


def state_of(game: InteractiveGame, team: int) -> CMsgBotWorldState:
    return CMsgBotWorldState.FromString(game.world_state(team))


def handles(message: Message) -> Iterator[tuple[str, int]]:
    """Yield name and value of each field that names a unit, of the message and those within it."""
    for field, value in message.ListFields():
        if field.name in HANDLES:
            yield field.name, value
        elif field.message_type is not None and not field.name.endswith("_events"):
            for inner in value if field.is_repeated else [value]:
                yield from handles(inner)


def unit_of(handle: int) -> tuple[int, int]:
    """Return slot and generation that a handle names, also of a unit that is gone."""
    return (handle & 1023) - 1, handle >> 10


def check_state(game: InteractiveGame, team: int) -> CMsgBotWorldState:
    """Compare a team's world state with the game and its fog. Return it."""
    told, frame = state_of(game, team), game.spectate()
    assert (told.team_id, told.game_state) == (2 + team, 4 if frame["time"] < 0 else 5)
    assert math.isclose(told.dota_time, frame["time"], abs_tol=1e-4)
    listed = {}
    for unit in told.units:
        assert 0 < unit.handle < 1 << 24 and unit.handle not in listed
        listed[unit.handle] = game.unit_of_bot_handle(unit.handle)
    units = {(u["slot"], u["generation"]): u for u in frame["units"]}
    expected = {key for key, u in units.items() if (u["alive"] and u["seen_by"][team] if u["team"] != team
                                                    else u["alive"] or u["hero"] >= 0)}
    assert set(listed.values()) == expected
    for unit in told.units:
        check_unit(unit, units[listed[unit.handle]], team)
    for name, handle in handles(told):
        assert handle in listed, name
    for flying in (*told.linear_projectiles, *(p for u in told.units for p in u.incoming_tracking_projectiles)):
        assert (flying.caster_player_id < 0) >= (not flying.HasField("caster_handle"))
        check_place(game, team, flying.location, [(x, y, t) for x, y, t in frame["projectiles"]])
    for zone in told.avoidance_zones:
        check_place(game, team, zone.location, [(x, y, t) for x, y, _, t in frame["areas"]])
    alive = {u["hero"]: u["alive"] for u in units.values() if u["hero"] >= 0}
    assert {p.player_id: p.is_alive for p in told.players} == alive
    for player in told.players:
        assert player.team_id == 2 + player.player_id // 5
        assert (player.respawn_time > 0) <= (not player.is_alive)
    own = sum(p.kills for p in told.players if p.player_id // 5 == team)
    assert own <= frame["kills"][team]
    return told


def check_place(game: InteractiveGame, team: int, at: CMsgBotWorldState.Vector,
                places: list[tuple[float, float, int]]) -> None:
    """Check that the game has something at a place which belongs to the team or stands where the team sees."""
    sides = {side for x, y, side in places if (x, y) == (at.x, at.y)}
    assert sides
    if team in sides:
        return
    fog = seen(game, team)[("radiant_fog", "dire_fog")[team]]
    cell = int((at.x - LOWEST) // FOG_CELL) + FOG_CELLS * int((at.y - LOWEST) // FOG_CELL)
    assert fog[cell >> 3] >> (cell & 7) & 1


def check_unit(told: CMsgBotWorldState.Unit, unit: dict[str, Any], team: int) -> None:
    own = unit["team"] == team
    assert (told.name, told.unit_type, told.team_id) == (unit["name"], TYPES[unit["kind"]], 2 + unit["team"])
    assert (told.is_alive, told.location.x, told.location.y) == (unit["alive"], unit["x"], unit["y"])
    assert abs(told.health - (unit["hp"] if unit["alive"] else 0)) <= (0.5 if unit["hp"] >= 0.5 else 1)
    assert told.health > 0 or not unit["alive"]
    assert abs(told.health_max - unit["max_hp"]) <= 0.5
    assert abs(told.mana - unit["mana"]) <= 1 and abs(told.mana_max - unit["max_mana"]) <= 0.5
    turn = (told.facing - math.degrees(unit["facing"])) % 360
    assert 0 <= told.facing < 360 and min(turn, 360 - turn) <= 0.51
    assert 0 <= told.anim_cycle <= 1
    assert (told.anim_activity == 1503) == (unit["alive"] and unit["act"] in (ATTACK_WINDUP, ATTACK_BACKSWING))
    assert told.is_channeling == (unit["alive"] and unit["act"] == CHANNEL)
    assert told.is_using_ability == (unit["alive"] and unit["act"] in (CAST, CHANNEL))
    if not own:
        assert not any(told.HasField(name) for name in OWN_ONLY)
        for held in (*told.abilities, *told.items):
            assert not any(held.HasField(name) for name in OWN_ABILITY)
        assert all(item.slot < 6 or item.slot == 15 for item in told.items)
    if unit["hero"] < 0:
        assert not told.items and not told.HasField("reliable_gold")
        return
    assert (told.player_id, told.level) == (unit["hero"], unit["level"])
    abilities = {slot: a for slot, a in enumerate(unit["abilities"]) if a[0]}
    assert {a.slot: ABILITIES[a.ability_id] for a in told.abilities} == {slot: a[0] for slot, a in abilities.items()}
    items = {slot: name for slot, name in enumerate(unit["items"]) if name and (own or slot < 6 or slot == 15)}
    assert {i.slot: ITEMS[i.ability_id] for i in told.items} == items
    if not own:
        return
    assert abs(told.reliable_gold + told.unreliable_gold - unit["gold"]) <= 2
    for ability in told.abilities:
        _, level, cooldown = abilities[ability.slot]
        assert ability.level == level
        # The game counts a time as come from a thousandth of a second before it.
        assert math.isclose(ability.cooldown_remaining, cooldown, abs_tol=2e-3)
        assert ability.cooldown_remaining == 0 or cooldown > 0
        assert not ability.is_fully_castable or (level > 0 and ability.cooldown_remaining == 0)
