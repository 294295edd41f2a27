"""Random and scripted players."""

import numpy as np
import pytest

from dota.config import GameConfig, ObservationConfig
from dota.spaces import Layout, MaskClass, TargetType
from dota.tables import load_tables
from dota.vec_game import STATS, Controller, VecGame, Winner
from tests.dota.scenes.patches import read_data

MID = GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], start_seconds=-30, max_game_seconds=600,
                 neutrals=False, roshan=False, runes=False,
                 observation=ObservationConfig(neutral_creeps=0, buildings=3, wards=0, couriers=0))
TEAM = GameConfig(start_seconds=-5, observation=ObservationConfig(buildings=11, wards=4))
ACTION, DELAY, TARGET, DX, DY = 0, 1, 2, 6, 7  # columns of a recorded command


def match(one, other, games, seed, config=MID):
    """Play whole games of ``one`` against ``other``, half on each side of the map.

    Return the winners (1, 2, 3 a draw) and the totals by name, [games, 2], ``one`` first.
    """
    vec = VecGame(config, games, seed=seed, observations=False)
    half = games // 2
    vec.controllers[:half] = (one, other)
    vec.controllers[half:] = (other, one)
    while (running := np.flatnonzero(vec.winner == Winner.RUNNING)).size:
        vec.step(which=running)
    winner = vec.winner.copy()
    winner[half:] = np.where(winner[half:] == Winner.DRAW, Winner.DRAW, 3 - winner[half:])
    totals = vec.stats.mean(2)
    totals[half:] = totals[half:, ::-1]
    return winner, {name: totals[:, :, i] for i, name in enumerate(STATS)}


@pytest.fixture(scope="module")
def random_play():
    """Play a random bot's game; return each hero's available actions and resulting command, [steps, heroes, ...]."""
    vec = VecGame(TEAM, 1, seed=2)
    vec.controllers[:] = Controller.RANDOM
    replay = vec.record(0)
    offered, masks = [], []
    for _ in range(900):
        offered.append(vec.obs["available"][0].reshape(10, -1).copy())
        masks.append(vec.obs["target_mask"][0].reshape(10, len(MaskClass), -1).copy())
        vec.step()
    return Layout(TEAM), np.array(offered), np.array(masks), replay.orders


def uniform(shares, drawn):
    """Return whether counts fit a uniform distribution: Pearson's statistic within five standard deviations."""
    expected = drawn / len(shares)
    statistic = ((shares - expected) ** 2 / expected).sum()
    return statistic < len(shares) - 1 + 5 * np.sqrt(2 * (len(shares) - 1))


def test_random_bot_samples_actions_uniformly(random_play):
    _, offered, _, orders = random_play
    taken = orders[:, :, ACTION]
    assert (offered == taken[:, :, None]).any(-1).all()
    counts = (offered > 0).sum(-1)
    for many in np.unique(counts):
        rows = counts == many
        if rows.sum() < 50 * many:
            continue
        slots = (offered[rows] == taken[rows][:, None]).argmax(-1)
        assert uniform(np.bincount(slots, minlength=many), rows.sum()), f"{many} offered"
    assert (counts >= 3).any()


def test_random_delays_and_offsets_are_uniform(random_play):
    _, offered, _, orders = random_play
    chose = (offered > 0).any(-1)
    drawn = chose.sum()
    assert uniform(np.bincount(orders[:, :, DELAY][chose], minlength=4), drawn)
    for column in (DX, DY):
        assert uniform(np.bincount(orders[:, :, column][chose] + 4, minlength=9), drawn)


def test_random_aims_at_valid_targets_only(random_play):
    layout, _, masks, orders = random_play
    aimed = empty = 0
    for t, hero in np.ndindex(orders.shape[:2]):
        action = layout.actions[orders[t, hero, ACTION]]
        if action.target not in (TargetType.UNIT, TargetType.UNIT_OFFSET):
            continue
        valid = masks[t, hero, action.mask].sum()
        aimed += valid > 0
        empty += valid == 0
        assert (orders[t, hero, TARGET] >= 0) == (valid > 0)
    assert aimed > 200


def test_scripted_beats_random():
    winner, totals = match(Controller.SCRIPTED, Controller.RANDOM, 16, seed=1)
    assert (winner == Winner.RADIANT).sum() >= 15
    assert totals["kills"][:, 0].mean() > 1
    assert totals["last_hits"][:, 0].mean() > 5 * totals["last_hits"][:, 1].mean()


def test_scripted_takes_last_hits_and_denies():
    """At least a fifth of the enemy's creeps when uncontested, and some denies."""
    vec = VecGame(MID, 32, seed=3, observations=False)
    vec.controllers[:16] = (Controller.SCRIPTED, Controller.POLICY)  # a policy without commands stands still
    vec.controllers[16:] = (Controller.POLICY, Controller.SCRIPTED)
    seen = np.zeros((32, len(STATS)))
    while vec.game_time.max() < 200:
        vec.step()
        for i in range(32):
            if vec.winner[i] == Winner.RUNNING:
                seen[i] = vec.stats[i, i // 16, 0]
    waves = 200 // 30
    assert seen[:, STATS.index("last_hits")].mean() > 0.2 * 4 * waves
    assert seen[:, STATS.index("denies")].mean() >= 2


@pytest.mark.runs
def test_stronger_bots_win_more():
    for stronger, weaker in ((Controller.HARD, Controller.EASY), (Controller.SCRIPTED, Controller.EASY),
                             (Controller.EASY, Controller.RANDOM)):
        winner, totals = match(stronger, weaker, 20, seed=5)
        won, lost = (winner == Winner.RADIANT).sum(), (winner == Winner.DIRE).sum()
        assert won >= 12 and lost <= 4, f"{stronger.name} against {weaker.name}: {won} to {lost}"
        assert totals["last_hits"][:, 0].mean() > totals["last_hits"][:, 1].mean()


# Gold a minute of the poorest and the richest player of a league game of June 2017, 31 minutes long (odota/core,
# json/3254426673_output.json), where a team's five got 190 to 687. Every hero begins with 600.
POOREST, RICHEST, START = 190, 687, 600


def items_worth(vec, game):
    """Return the cost of each of the ten heroes' items including the stash, highest first."""
    tables = load_tables("7.21d")
    worth = [sum(tables.item(item)["cost"] for item in unit["items"] if item)
             for unit in vec.spectate(game)["units"] if unit["hero"] >= 0]
    return sorted(worth, reverse=True)


@pytest.mark.parametrize("bot", [Controller.SCRIPTED, Controller.HARD])
def test_bots_hold_the_items_of_a_real_game(bot):
    """At minutes 5, 10 and 20 the average hero's items are worth at least half of the poorest and at most all of the
    richest player's total in a real game; every hero has more than at the start. At minute 20 most have boots and a
    finished item."""
    vec = VecGame(GameConfig(), 2, seed=7, observations=False)
    vec.controllers[:] = bot
    for minute in (5, 10, 20):
        while (behind := np.flatnonzero((vec.winner == Winner.RUNNING) & (vec.game_time < 60 * minute))).size:
            vec.step(which=behind)
        running = np.flatnonzero(vec.winner == Winner.RUNNING)
        assert running.size >= 1
        held = [set(unit["items"]) - {""} for game in running for unit in vec.spectate(int(game))["units"]
                if unit["hero"] >= 0]
        boots = [any("boots" in item or item == "item_power_treads" for item in items) for items in held]
        assert minute < 20 or np.mean(boots) >= 0.6, f"minute {minute}: {np.mean(boots):.2f} have boots"
        finished = [sum(bool(load_tables("7.21d").item(item)["recipes"]) for item in items) for items in held]
        assert minute < 20 or np.median(finished) >= 1, f"finished items at minute 20: {sorted(finished)}"
        worth = np.array([items_worth(vec, int(game)) for game in running])
        low, high = 0.5 * (START + POOREST * minute), START + RICHEST * minute
        assert low < worth.mean() < high, f"minute {minute}: {worth.mean():.0f} outside {low:.0f}..{high:.0f}"
        assert worth.max() < high
        if minute == 20:
            assert worth.min() > START


def test_both_players_of_a_duel_build_items():
    """After 500 s of the middle lane both hold a finished Wraith Band (515 gold) beside what they began with."""
    vec = VecGame(MID.model_copy(update={"kills_to_win": 0}), 4, seed=7, observations=False)
    vec.controllers[:] = Controller.SCRIPTED
    while (running := np.flatnonzero((vec.winner == Winner.RUNNING) & (vec.game_time < 500))).size:
        vec.step(which=running)
    seen = [unit["items"] for game in range(4) if vec.winner[game] == Winner.RUNNING
            for unit in vec.spectate(game)["units"] if unit["hero"] >= 0]
    assert len(seen) >= 4
    assert all("item_wraith_band" in items or "item_power_treads" in items for items in seen)


def test_scripted_teams_play_all_lanes():
    """Five against five: everybody gains experience, someone is on each lane, both sides take last hits."""
    vec = VecGame(TEAM, 1, seed=4, observations=False)
    vec.controllers[:] = Controller.SCRIPTED
    while vec.game_time[0] < 150:
        vec.step()
    totals = vec.stats[0]
    assert (totals[:, :, STATS.index("xp")] > 0).all()
    assert (totals[:, :, STATS.index("last_hits")].sum(-1) >= 5).all()
    # Lanes lie near the two outer corners and the middle: the projection across the diagonal tells them apart.
    heroes = [u for u in vec.spectate(0)["units"] if u["kind"] == "hero"]
    for team in (0, 1):
        across = sorted(u["y"] - u["x"] for u in heroes if u["team"] == team and u["alive"])
        assert across[-1] - across[0] > 6000


def test_the_strongest_plays_more_than_its_lane():
    """The first ten minutes of a game: runes are taken, wards stand, spells are cast, scrolls and potions used."""
    vec = VecGame(GameConfig(), 2, seed=6, observations=False)
    vec.controllers[:] = Controller.HARD
    replays = [vec.record(game) for game in range(2)]
    wards = 0
    while vec.game_time.max() < 600:
        vec.step()
        if round(vec.game_time[0] * 7.5) % 450 == 0:
            wards = max(wards, sum(unit["kind"] == "ward" for unit in vec.spectate(0)["units"]))
    names = {action.id: action.name for action in vec.layout.actions}
    ids, counts = np.unique(np.concatenate([replay.orders[:, :, ACTION].ravel() for replay in replays]),
                            return_counts=True)
    taken = {names[int(i)]: int(n) for i, n in zip(ids, counts, strict=True)}
    assert wards >= 2
    assert taken.get("pickup", 0) > 0 and taken.get("item_tpscroll", 0) > 0
    assert sum(name.split("_")[0] != "item" and i >= 9 for i, name in names.items() if name in taken) >= 6
    assert sum(taken.get(name, 0) for name in ("item_tango", "item_flask", "item_clarity")) > 5


@pytest.mark.slow
@pytest.mark.parametrize(("stronger", "weaker", "wins"), [
    (Controller.HARD, Controller.EASY, 95), (Controller.HARD, Controller.SCRIPTED, 60),
    (Controller.SCRIPTED, Controller.EASY, 60)])
def test_stronger_teams_win(stronger, weaker, wins):
    """A hundred games five against five, the sides swapped. Measured: docs/bots.md."""
    winner, _ = match(stronger, weaker, 100, seed=11, config=GameConfig(max_game_seconds=4800))
    assert (winner == Winner.RADIANT).sum() >= wins


@pytest.mark.slow
@pytest.mark.parametrize("side", [0, 1])
def test_the_strongest_wins_one_against_one_from_either_side(side):
    """Twenty one-against-one games from each side: behaviour that depends on the direction would be weaker on one."""
    vec = VecGame(MID, 20, seed=1000, observations=False)
    vec.controllers[:, side], vec.controllers[:, 1 - side] = Controller.HARD, Controller.SCRIPTED
    while (running := np.flatnonzero(vec.winner == Winner.RUNNING)).size:
        vec.step(which=running)
    assert (vec.winner == (Winner.RADIANT, Winner.DIRE)[side]).sum() >= 12


@pytest.mark.slow
def test_the_strongest_stacks_camps():
    """Twelve games of ten minutes: in some a camp has more creeps than its largest spawn."""
    data = read_data("7.21d")
    largest = max(len(born) for tier in data["units"]["neutral_camp_sets"].values() for born in tier)
    camps = np.array([(camp["x"], camp["y"]) for camp in data["map"]["camps"]])
    vec = VecGame(GameConfig(max_game_seconds=4800), 12, seed=6, observations=False)
    vec.controllers[:] = Controller.HARD
    stacked = np.zeros(12, bool)
    for step in range(4500):  # ten minutes
        vec.step()
        if step % 450:
            continue
        for i in range(12):
            where = np.array([(u["x"], u["y"]) for u in vec.spectate(i)["units"] if u["kind"] == "neutral"])
            if len(where):
                nearest = ((where[:, None] - camps) ** 2).sum(2).argmin(1)
                stacked[i] |= np.bincount(nearest).max() > largest
    assert stacked.sum() >= 2


@pytest.mark.slow
def test_the_strongest_pulls_camps():
    """Twelve games of ten minutes: in a third of them a camp's creeps and lane creeps meet for seconds away from the
    camp. Bots without pulling reach 25 such observations by chance, all in three of these games."""
    camps = np.array([(camp["x"], camp["y"]) for camp in read_data("7.21d")["map"]["camps"]])
    vec = VecGame(GameConfig(max_game_seconds=4800), 12, seed=6, observations=False)
    vec.controllers[:] = Controller.HARD
    met = np.zeros(12, int)
    for step in range(4500):
        vec.step()
        if step < 450 or step % 10:
            continue
        for i in range(12):
            units = vec.spectate(i)["units"]
            lane = np.array([(u["x"], u["y"]) for u in units if u["kind"] == "creep"]).reshape(-1, 2)
            wild = np.array([(u["x"], u["y"]) for u in units if u["kind"] == "neutral"]).reshape(-1, 2)
            away = ((wild[:, None] - camps) ** 2).sum(2).min(1, initial=1e9) > 500**2
            beside = ((wild[:, None] - lane) ** 2).sum(2).min(1, initial=1e9) < 180**2
            met[i] += (away & beside).any()
    assert (met > 2).sum() >= 4 and met.sum() >= 50
