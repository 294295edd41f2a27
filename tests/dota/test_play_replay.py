"""A replay of a game with people reproduces the game; files of earlier formats can be read."""

import json
import random
import zlib
from pathlib import Path

import numpy as np
import pytest

from dota import playback
from dota.play import FRAMES, KINDS, InteractiveGame, Order
from dota.replay import PersonRow, Replay
from dota.vec_game import Controller
from tests.dota.small_games import TEAM


def drawn_order(dice: random.Random, game: InteractiveGame) -> Order:
    """Return a random order that is likely to be accepted."""
    bodies = [u for u in game.spectate()["units"] if u["alive"]]
    u = dice.choice(bodies)
    return Order(dice.choice(KINDS), dice.choice((None, (u["slot"], u["generation"]))),
                 dice.choice((None, (u["x"] + dice.uniform(-900, 900), u["y"] + dice.uniform(-900, 900)))),
                 dice.randint(0, 9), dice.randint(0, 9),
                 dice.choice(("item_flask", "item_boots", "item_magic_wand", "deliver", "return")),
                 dice.random() < 0.3, dice.random() < 0.3)


def played_by_people(steps: int, seed: int) -> tuple[InteractiveGame, Replay]:
    """Play bots against bots while people join, leave and give random orders between any two frames."""
    game, dice = InteractiveGame(TEAM, seed), random.Random(seed)
    tape = game.record()
    game.controllers[:] = [Controller.HARD, Controller.SCRIPTED]
    for _ in range(steps):
        meddle(game, dice)
        game.begin()
        for _ in range(FRAMES):
            meddle(game, dice)
            game.frame()
    return game, tape


def meddle(game: InteractiveGame, dice: random.Random) -> None:
    for hero in (0, 1, 5):
        if dice.random() < 0.02:
            game.take(hero, dice.random() < 0.7, scripted=dice.random() < 0.3,
                      learns=dice.choice((None, False, True)))
        if dice.random() < 0.3:
            game.order(hero, drawn_order(dice, game))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_replay_with_people_is_the_same_game(tmp_path: Path, seed: int) -> None:
    game, tape = played_by_people(150, seed)
    assert len(tape) == 150 and len({row.kind for row in tape.people}) > 8
    tape.save(tmp_path / "a.replay", game.hash())
    again = Replay.load(tmp_path / "a.replay")
    assert again.people == tape.people
    last = list(playback.play(again))[-1]
    assert last.hash(0) == game.hash()
    np.testing.assert_array_equal(last.obs["shared"][0], game.obs["shared"])
    assert json.loads((tmp_path / "a.replay").read_bytes().partition(b"\n")[0])["version"] == 3


def test_without_people_orders_it_is_another_game(tmp_path: Path) -> None:
    game, tape = played_by_people(150, 1)
    tape.final_hash = game.hash()
    tape.people.clear()
    with pytest.raises(ValueError, match="diverged"):
        list(playback.play(tape))


def test_a_recording_begins_with_the_game_and_only_once() -> None:
    game = InteractiveGame(TEAM, 1)
    game.record()
    with pytest.raises(ValueError, match="begun"):
        game.record()
    stepped, taken = InteractiveGame(TEAM, 1), InteractiveGame(TEAM, 1)
    stepped.step()
    taken.take(0, True)
    for game in (stepped, taken):
        with pytest.raises(ValueError, match="begun"):
            game.record()


@pytest.mark.parametrize("version", [1, 2])
def test_files_of_earlier_formats_are_read(tmp_path: Path, version: int) -> None:
    game = InteractiveGame(TEAM, 1)
    tape = game.record()
    game.controllers[:] = Controller.SCRIPTED
    for _ in range(20):
        game.step()
    path = tmp_path / "a.replay"
    tape.save(path, game.hash())
    head, _, body = path.read_bytes().partition(b"\n")
    left_out = ("people", "items") + (("made_by", "checks") if version == 1 else ())
    old = {k: v for k, v in json.loads(head).items() if k not in left_out} | {"version": version}
    path.write_bytes(json.dumps(old).encode() + b"\n" + body)
    assert list(playback.play(Replay.load(path)))[-1].hash(0) == game.hash()


@pytest.mark.parametrize("how", ["more", "fewer", "huge", "text", "hero"])
def test_damaged_files_are_refused(tmp_path: Path, how: str) -> None:
    game, tape = played_by_people(10, 1)
    path = tmp_path / "a.replay"
    if how == "hero":
        tape.people.append(PersonRow(0, 9, held=True))
        tape.people.sort(key=lambda row: row.frame)
    tape.save(path, game.hash())
    head, _, body = path.read_bytes().partition(b"\n")
    fields = json.loads(head)
    if how in ("more", "fewer", "huge"):
        fields["people"] += {"more": 1, "fewer": -1, "huge": 1 << 40}[how]
    if how == "text":
        fields["items"] = []
    path.write_bytes(json.dumps(fields).encode() + b"\n" + body)
    with pytest.raises(ValueError, match="hero 9" if how == "hero" else "not a readable replay"):
        list(playback.play(Replay.load(path)))


def test_any_numbers_in_peoples_rows_are_played_or_refused(tmp_path: Path) -> None:
    _, tape = played_by_people(10, 1)
    path = tmp_path / "a.replay"
    tape.save(path, None)
    head, _, body = path.read_bytes().partition(b"\n")
    raw = zlib.decompress(body)
    rows = len(tape.people) * 27
    for seed in range(20):
        changed = raw[:-rows] + random.Random(seed).randbytes(rows)
        path.write_bytes(head + b"\n" + zlib.compress(changed))
        try:
            list(playback.play(Replay.load(path)))
        except ValueError:
            pass
