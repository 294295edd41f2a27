"""Recordings of rated games contain the policies' outputs in the rows of their heroes."""

from pathlib import Path
from typing import Any

import numpy as np

from dota.config import RewardConfig
from dota.spectator.recording import Recording
from dota.vec_game import VecGame
from five.clients.inference import ActResult
from five.services.evaluator.cameras import Cameras
from five.services.evaluator.matches import Pairing, TeamPlayer
from tests.services.test_dota_env import GAME, LAYOUT

BUILDINGS = LAYOUT.groups["enemy_buildings"].count


def test_recording_contains_policy_outputs_of_each_side(tmp_path: Path) -> None:
    games = VecGame(GAME, 2, 3)
    games.controllers[1, 0] = 3
    cameras = Cameras(games, "trial", RewardConfig())
    cameras.began(1, Pairing(TeamPlayer("version-7", version=7), TeamPlayer("scripted", 2), 1, game="ab" * 8), "ab" * 8)
    cameras.record_to(1, tmp_path / "a.view")
    assert cameras.wants(1) and not cameras.wants(0)
    # Rows of a response: the second one, slot 1 and side 1, has debug outputs.
    slots, sides, has_debug = np.array([0, 1]), np.array([0, 1]), np.array([False, True])
    aim = np.zeros((1, 1, LAYOUT.units), np.float16)
    aim[..., 0] = 0.5
    answer = ActResult(
        np.zeros(0, np.int64), actions=np.ones((2, 1, 6), np.int16), values=np.array([[9.0], [0.25]], np.float32),
        versions=np.array([6, 7]), policy_debug={
            "choice": np.full((1, 1, 30), 0.25, np.float16), "aim": aim, "win_probability": np.full((1, 1), 0.75),
            "net_worth_rank": np.array([[[1.0, 0, 0, 0, 0]]], np.float16),
            "building_events": np.full((1, 1, BUILDINGS), 0.5, np.float16)})
    for _ in range(3):
        games.step()
        cameras.record_step([1])
        cameras.record_outputs(slots, sides, has_debug, answer)
    assert cameras.ended(1)
    recording = Recording.load(tmp_path / "a.view")
    frame = list(recording.steps())[2].frame
    thought = dict(zip(recording.schema.table("thought").fields, frame["thought"][5].tolist(), strict=True))
    assert (thought["known"], thought["value"], thought["version"]) == (3, 250, 8)
    assert thought["action"] == games.obs["available"][1, 1, 0, 1]
    assert frame["rank"][5].tolist() == [255, 0, 0, 0, 0]
    hero = int(frame["hero"][5, recording.schema.table("hero").column("unit")])
    assert frame["aim"][5 * 8].tolist() == [hero, 128]
    units = games.slot_units(1, 1)
    start = LAYOUT.groups["enemy_buildings"].start
    seen = [unit + 1 for unit in units[start:start + BUILDINGS].tolist() if unit >= 0]
    assert [unit for unit, _ in frame["fall"][6:].tolist() if unit] == seen
    assert not frame["thought"][0].any() and not frame["fall"][:6].any()  # a bot's


class Viewers:
    """Viewers of every game. They are sent ``kinds`` of messages."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    def wants(self, game: str) -> bool:
        return True

    def put(self, kind: str, game: str, *rest: Any, facts: Any = None) -> None:
        self.kinds.append(kind)


def test_full_disk_costs_the_recording_only(tmp_path: Path) -> None:
    """Its viewers see the game until its end."""
    viewers: Any = Viewers()
    games = VecGame(GAME, 1, 3)
    cameras = Cameras(games, "trial", RewardConfig(), viewers)
    cameras.began(0, Pairing(TeamPlayer("version-7", version=7), TeamPlayer("scripted", 2), 1, game="a"), "ab" * 8)
    cameras.record_to(0, tmp_path / "a.view")
    writer = cameras._writers[0]
    writer._file.close()
    writer._file = Path("/dev/full").open("wb")
    writer._file.write(bytes(1000))  # less than the buffer of the file, so that also closing it fails
    for _ in range(100):
        assert cameras.wants(0)
        games.step()
        cameras.record_step([0])
    assert not cameras._writers and not list(tmp_path.iterdir())
    assert not cameras.ended(0)
    assert (viewers.kinds[0], viewers.kinds[-1]) == ("header", "end") and set(viewers.kinds[1:-1]) == {"chunk"}


def test_full_disk_at_the_end_leaves_no_file(tmp_path: Path) -> None:
    cameras = Cameras(VecGame(GAME, 1, 3), "trial", RewardConfig())
    cameras.began(0, Pairing(TeamPlayer("version-7", version=7), TeamPlayer("scripted", 2), 1, game="a"), "ab" * 8)
    cameras.record_to(0, tmp_path / "a.view")
    writer = cameras._writers[0]
    writer._file.close()
    writer._file = Path("/dev/full").open("wb")
    assert not cameras.ended(0) and not list(tmp_path.iterdir())


def test_ended_game_is_not_listed_as_live() -> None:
    """A slot stays empty between two ratings."""
    cameras = Cameras(VecGame(GAME, 2, 3), "trial", RewardConfig())
    for slot, game in ((0, "ab" * 8), (1, "cd" * 8)):
        cameras.began(slot, Pairing(TeamPlayer("version-7", version=7), TeamPlayer("scripted", 2), 1, game=game), game)
    assert [listed["game"] for listed in cameras.games()] == ["ab" * 8, "cd" * 8]
    cameras.ended(0)
    assert [listed["game"] for listed in cameras.games()] == ["cd" * 8]
    cameras.ended(0)
