"""Cases of the game's fuzzer (`tests.dota.fuzzing`): each plays or tries something random that may be refused."""

import contextlib
import random
from collections.abc import Callable
from typing import Any

import numpy as np

REFUSED = (ValueError, KeyError, IndexError, TypeError, OverflowError)
HEADER = 48  # bytes of a snapshot's header


def heroes_of(patch: str) -> list[str]:
    """Return the playable heroes without their prefix."""
    from dota.tables import HERO_PREFIX, load_tables

    tables = load_tables(patch)
    return [hero.removeprefix(HERO_PREFIX) for hero in tables.heroes if not tables.missing_primitives(hero)]


def drawn_config(dice: random.Random) -> Any:
    """Return a random playable configuration: mode, size, patch, pool and randomisation."""
    from dota.config import ConsumablesConfig, GameConfig, ObservationConfig, RandomisationConfig

    patch = dice.choice(("7.21d", "7.19"))
    duel = dice.random() < 0.3
    heroes = 1 if duel else dice.choice((1, 2, 3, 5))
    known = heroes_of(patch)
    pool = dice.sample(known, dice.randint(heroes, len(known)))
    some = lambda most: dice.choice((0.0, dice.uniform(0, most)))  # noqa: E731
    return GameConfig(
        patch=patch, mode="1v1_mid" if duel else "5v5", heroes_per_team=heroes, hero_pool=pool,
        mirror_match=dice.random() < 0.3, max_game_seconds=dice.choice((20.0, 300.0, 3600.0)),
        start_seconds=dice.choice((-90.0, -10.0, 0.0)), kills_to_win=dice.randint(0, 3),
        courier=dice.choice(("scripted", "direct")), neutrals=dice.random() < 0.8, roshan=dice.random() < 0.8,
        runes=dice.random() < 0.8, buyback=dice.random() < 0.8, commit_windups=dice.random() < 0.3,
        offset_cell=dice.choice((1.0, 100.0, 1000.0)),
        scripted_actions=dice.sample(("buyback", "glyph", "shrine"), dice.randint(0, 3)),
        observation=ObservationConfig(
            allied_creeps=dice.randint(0, 64), neutral_creeps=dice.randint(0, 64), buildings=dice.randint(1, 32),
            wards=dice.randint(0, 64), couriers=dice.randint(0, 1), hero_modifiers=dice.randint(0, 32),
            unit_modifiers=dice.randint(0, 8), pickups=dice.randint(0, 6), minimap=dice.randint(1, 32),
            nearby_map=dice.randint(2, 16), passability=dice.randint(2, 16), mirror_dire=dice.random() < 0.5),
        consumables=ConsumablesConfig(tango=dice.randint(0, 16), salve=dice.randint(0, 16),
                                      town_portal=dice.randint(0, 16), income_share=dice.random()),
        save_consumables=dice.random() < 0.3,
        randomisation=RandomisationConfig(stats=some(1), gold=some(1), xp=some(10), item_drop=some(1),
                                          item_insert=some(1), consumables=some(1), skill=some(1), lane=some(1),
                                          lane_until_seconds=some(8000), roshan=dice.random() < 0.5))


def number(dice: random.Random) -> int:
    """Return an unsuitable number: small, at a type's limit, or anything."""
    return dice.choice((dice.randint(-3, 40), dice.choice((-32768, 32767, 383, 384, 255, 256, -128, 127)),
                        dice.randint(-32768, 32767)))


def games(dice: random.Random) -> None:
    """Play short games of bots, random actions and random commands (some invalid), with any form of observations;
    snapshot and restore them on the way."""
    from dota.vec_game import Controller, VecGame

    game = VecGame(drawn_config(dice), dice.randint(1, 2), seed=dice.getrandbits(63), threads=dice.randint(1, 2),
                   observations=dice.choice((False, True, "packed")))
    game.controllers[:] = np.array([[dice.choice(list(Controller)) for _ in range(2)] for _ in range(game.games)])
    chance = np.random.default_rng(dice.getrandbits(63))
    shape = game._no_actions.shape
    taken = game.snapshot(0)
    for step in range(dice.randint(50, 400)):
        if step % 7 == 6:
            commands = np.stack([game.commands(i)[-1] for i in range(game.games)])
            for _ in range(dice.randint(0, 3)):
                commands[tuple(dice.randrange(n) for n in commands.shape)] = number(dice)
            with contextlib.suppress(*REFUSED):
                game.step_commands(commands)
        else:
            game.step(chance.integers(0, 40, shape, dtype=np.int16) if step % 3 else None)
        for name in game.packed:
            game.packed_obs(name, [dice.randrange(game.games)])
        game.events(0)
        if step % 100 == 99:
            game.spectate(0)
            game.hash(0)
            if dice.random() < 0.3:
                game.restore(0, taken)
            taken = game.snapshot(0)


def duellists(dice: random.Random) -> tuple[Any, list[int]]:
    """Return a world whose heroes have all abilities, and its heroes' units."""
    from dota import _core
    from dota.tables import HERO_PREFIX, load_tables

    patch = dice.choice(("7.21d", "7.19"))
    tables, known = load_tables(patch), heroes_of(patch)
    n = dice.randint(1, 5)
    teams = [[HERO_PREFIX + hero for hero in dice.sample(known, n)] for _ in range(2)]
    world = _core.World(tables, {"neutrals": dice.random() < 0.5, "roshan": True, "runes": True,
                                 "start_s": dice.choice((-90.0, 0.0))}, *teams, dice.getrandbits(63))
    units = []
    for hero in (*range(n), *range(5, 5 + n)):
        world.give_xp(hero, dice.choice((0, 3000, 30000)))
        world.give_gold(hero, dice.choice((0, 20000)))
        for item in dice.sample(tables.items, 6):
            world.give_item(hero, item, dice.randint(0, 5))
        units.append(world.hero(hero)["unit"])
        world.set_unit(units[-1], x=dice.uniform(-900, 900), y=dice.uniform(-900, 900))
    return world, units


def orders(dice: random.Random) -> None:
    """Give random orders of every kind to any unit, mixed with the test interface of the world."""
    world, heroes = duellists(dice)
    kinds = ("none", "stop", "hold", "move", "attack", "attack_move", "cast", "cast_point", "cast_unit", "pickup")
    place = lambda: dice.choice((dice.uniform(-1500, 1500), dice.uniform(-9000, 9000),  # noqa: E731
                                 dice.uniform(-1e30, 1e30), float("nan"), float("inf")))
    near = lambda: dice.uniform(-1200, 1200)  # noqa: E731
    names = [unit["type"] for unit in world.units()]
    odd: list[Callable[[], object]] = [
        lambda: world.damage(dice.choice(heroes), dice.randint(-1, 120), dice.uniform(0, 3000)),
        lambda: world.kill(dice.randint(0, 120), dice.randint(-1, 120)),
        lambda: world.spawn(dice.choice(names), number(dice) if dice.random() < 0.2 else dice.randint(0, 2), near(),
                            near(), dice.randint(-1, 3)),
        lambda: world.set_unit(dice.choice(heroes), mana=1000, hp=500, x=near(), y=near()),
        lambda: world.set_unit(dice.randint(-2, 400), x=place(), y=place()),
        lambda: world.rune(dice.choice(heroes), number(dice)),
        lambda: world.store_rune(dice.choice(heroes), number(dice)),
        lambda: world.glyph(number(dice)),
        lambda: world.shrine(number(dice)),
        lambda: world.buyback(number(dice)),
        lambda: world.visible(number(dice), number(dice)),
        lambda: world.team(number(dice)),
        lambda: world.can_attack(number(dice), number(dice)),
        lambda: world.protected(number(dice)),
        lambda: world.modifiers(number(dice)),
        lambda: world.set_lanes(dice.randint(0, 9), number(dice), 100.0),
        lambda: world.set_time(dice.uniform(-100, 5000)),
        lambda: world.clear_items(dice.randint(0, 9)),
        lambda: world.give_xp(dice.randint(0, 9), dice.uniform(-10, 5000))]
    for _ in range(dice.randint(20, 120)):
        for _ in range(dice.randint(0, 12)):
            wild = dice.random() < 0.1
            try:
                unit = dice.choice(heroes) if dice.random() < 0.7 else dice.randint(0, 150)
                world.order(unit, dice.choice(kinds), number(dice) if wild else dice.randint(-1, 90),
                            place() if wild else near(), place() if wild else near(),
                            number(dice) if wild else dice.choice((*range(6), *range(16, 32))),
                            number(dice) if wild else -1)
            except REFUSED:
                pass
        if dice.random() < 0.3:
            try:
                dice.choice(odd)()
            except REFUSED:
                pass
        world.step()
        world.events()
    world.hash()


def people(dice: random.Random) -> None:
    """Play a bot game in which people join, leave and give random orders between any two frames; read each team's view;
    check that the replay reproduces the game."""
    from dota.config import GameConfig
    from dota.play import KINDS as ORDERS
    from dota.play import InteractiveGame, Order
    from dota.playback import play
    from dota.spectator.schema import game_schema
    from dota.tables import load_tables
    from dota.vec_game import Controller

    config: GameConfig = drawn_config(dice)
    game, out = InteractiveGame(config, dice.getrandbits(63)), game_schema(policy_debug=False).empty()
    tape = game.record()
    game.controllers[:] = [dice.choice(list(Controller)) for _ in range(2)]
    heroes = [5 * team + place for team in range(2) for place in range(config.heroes_per_team)]
    goods = [*load_tables(config.patch).items, "deliver", "return", "stash", "", "nothing"]
    whole = lambda: dice.choice((dice.randint(-1, 16), dice.randint(0, 8), number(dice), 1 << 40))  # noqa: E731
    rich = dice.random() < 0.6  # gets experience and gold, which no replay records
    for hero in heroes if rich else ():
        game._vec._core.give_xp(0, hero, dice.choice((0, 3000, 30000)))
        game._vec._core.give_gold(0, hero, dice.choice((0, 20000)))

    def wild() -> Order:
        units = game.spectate()["units"]
        u = dice.choice(units)
        near = (u["x"] + dice.uniform(-400, 400), u["y"] + dice.uniform(-400, 400))
        odd = (dice.choice((0.0, 1e30, -1e300, float("nan"))), dice.choice((-9000.0, float("inf"), float("nan"))))
        target = dice.choice((None, (u["slot"], u["generation"]), (u["slot"], u["generation"]), (whole(), whole())))
        return Order(dice.choice((*ORDERS, "none of them")), target, dice.choice((None, near, near, odd)), whole(),
                     whole(), dice.choice(goods), dice.random() < 0.3)

    for _ in range(dice.randint(20, 150)):
        game.begin()
        while game.frames_left:
            for hero in heroes:
                if dice.random() < 0.05:
                    game.take(hero, dice.random() < 0.8, scripted=dice.random() < 0.3)
                if dice.random() < 0.3:
                    game.order(hero, wild())
            if dice.random() < 0.02:
                game.order(number(dice), wild())
            game.frame()
            if dice.random() < 0.1:
                team = dice.choice((None, 0, 1))
                game.write_seen(team, out)
                game.events(team)
    if not rich:
        tape.final_hash = game.hash()
        for _ in play(tape):
            pass


def configurations(dice: random.Random) -> None:
    """Try a configuration with invalid values: it is refused, or playable."""
    from dota.config import GameConfig
    from dota.vec_game import Controller, VecGame

    fields = drawn_config(dice).model_dump()
    for _ in range(dice.randint(1, 4)):
        at = fields
        key = dice.choice(list(at))
        while isinstance(at[key], dict) and at[key] and dice.random() < 0.9:
            at = at[key]
            key = dice.choice(list(at))
        at[key] = dice.choice((number(dice), dice.uniform(-1e9, 1e9), float("nan"), float("inf"), 1e-30, True, None, "",
                               "sniper", [], ["sniper"], ["sniper", "nobody"], 0, -1, 1, 2**31, 2**63))
    try:
        game = VecGame(GameConfig.model_validate(fields), 1, seed=dice.getrandbits(70))
    except REFUSED:
        return
    game.controllers[:] = dice.choice((Controller.RANDOM, Controller.HARD))
    for _ in range(60):
        game.step()


def mutated(dice: random.Random, snapshot: bytes, end: int) -> bytes:
    """Return the bytes with changes between the header and ``end``, truncated, extended, or with another header."""
    data = bytearray(snapshot)
    how = dice.random()
    if how < 0.05:
        return bytes(data[:dice.randint(0, len(data))])
    if how < 0.1:
        return bytes(data) + dice.randbytes(dice.randint(1, 100))
    if how < 0.15:
        data[dice.randint(0, HEADER - 1)] ^= 1 << dice.randint(0, 7)
        return bytes(data)
    for _ in range(dice.choice((1, 1, 2, 5, 50))):
        size = dice.choice((1, 2, 4, 8))
        at = dice.randint(HEADER, end - 8) // size * size
        value = dice.choice((b"\xff" * 8, bytes(8), dice.randbytes(8), dice.randint(0, 500).to_bytes(8, "little"),
                             b"\x00\x00\xc0\x7f" * 2))
        data[at:at + size] = value[:size]
    return bytes(data)


def snapshots(dice: random.Random) -> None:
    """Try changed snapshots of a world or a bot game with a valid checksum: they are refused, or playable."""
    from dota import _core
    from dota.vec_game import Controller, VecGame

    if dice.random() < 0.5:
        world, _ = duellists(dice)
        world.step(dice.randint(1, 300))
        take, restore = world.snapshot, world.restore

        def play() -> None:
            world.step(dice.randint(1, 20))
            world.hash()
            world.events()
            world.units()
    else:
        game = VecGame(drawn_config(dice), 1, seed=dice.getrandbits(63))
        game.controllers[:] = dice.choice((Controller.RANDOM, Controller.EASY, Controller.HARD))
        for _ in range(dice.randint(1, 300)):
            game.step()
        take, restore = lambda: game.snapshot(0), lambda state: game.restore(0, state)

        def play() -> None:
            for _ in range(dice.randint(1, 20)):
                game.step()
            game.spectate(0)

    saved = take()
    for _ in range(dice.randint(5, 40)):
        bad = mutated(dice, saved, len(saved))
        if dice.random() < 0.9 and len(bad) >= HEADER:
            bad = _core.sealed(bad)
        try:
            restore(bad)
        except REFUSED:
            continue
        play()
        restore(saved)


CASES: dict[str, Callable[[random.Random], None]] = {
    "games": games, "orders": orders, "people": people, "configurations": configurations, "snapshots": snapshots}
