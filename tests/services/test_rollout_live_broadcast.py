"""Live broadcast of a group's games with and without viewers."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dota.config import RewardConfig
from dota.rewards import SIGNALS, signal_weights, time_weights
from dota.spectator.camera import Camera
from dota.spectator.chunks import read_chunk
from dota.spectator.header import read_header
from dota.vec_game import STATS, VecGame
from five.clients.inference import WANT_POLICY_DEBUG, ActResult
from five.services.rollout import live_broadcast
from five.services.rollout.anneal_assignment import GameVariant
from five.services.rollout.env_slots import EnvSlots
from five.services.rollout.environment import LocalEnvironment, StepResult
from five.services.rollout.live_broadcast import FIRST_STEPS, LiveBroadcast
from five.services.rollout.matchmaking import GameRecord, Match
from five.services.rollout.step_buffer import StepBuffer
from rapid.store.live_channel import NOTHING_WATCHED, WatchedGames
from tests.services.test_dota_env import GAME, LAYOUT

UNITS = LAYOUT.units
BUILDINGS = LAYOUT.groups["enemy_buildings"].count


class Source:
    """Records messages."""

    name = "rollout/0"

    def __init__(self) -> None:
        self.watched = NOTHING_WATCHED
        self.sent: list[tuple[str, str, bytes]] = []
        self.facts: list[Any] = []

    def wants(self, game: str) -> bool:
        return game in self.watched.games

    def put(self, kind: str, game: str, body: bytes = b"", facts: Any = None) -> None:
        self.sent.append((kind, game, body))
        self.facts.append(facts)


class SteppedGames:
    """Two games of a group, stepped by the test."""

    def __init__(self) -> None:
        self.source = Source()
        self.environment = LocalEnvironment(VecGame(GAME, 2, 3))
        self.buffer = StepBuffer(LAYOUT.array_specs(), 20, 2, 1, len(SIGNALS))
        self.slots = EnvSlots(2, 4, 2, {}, np.random.default_rng(0))
        self.records = [GameRecord(Match("aa" * 8), np.zeros((2, 1, len(SIGNALS)))),
                        GameRecord(Match("bb" * 8, bot="scripted", side=1), np.zeros((2, 1, len(SIGNALS))))]
        self.broadcast = LiveBroadcast(self.source, "trial", GAME, RewardConfig(), STATS)  # type: ignore[arg-type]
        self.steps = 0

    async def begin(self) -> None:
        for place, record in enumerate(self.records):
            self.slots.start_game(place, 0, record.match.seats)
        controllers = [[3 * (record.match.bot is not None and side == record.match.side) for side in range(2)]
                       for record in self.records]
        await self.environment.reset(np.arange(2, dtype=np.int32), np.array(controllers, np.uint8),
                                     self.buffer.observation(0))

    async def step(self, count: int = 1) -> None:
        for _ in range(count):
            self.broadcast.update_viewers(self.records, self.slots, self.environment)
            rows = self.slots.rows
            row = self.buffer.row(self.steps)
            asked = self.slots.flags(self.steps).reshape(-1)[rows] & WANT_POLICY_DEBUG != 0
            n = int(asked.sum())
            self.buffer.actions[row, :, :, :, 0] = 1  # the second available action
            self.buffer.values[row] = 0.5
            self.buffer.versions[row] = 9
            aim = np.zeros((n, 1, UNITS), np.float16)
            aim[..., 0] = 0.75  # the first slot is the hero itself
            policy_debug = {"choice": np.full((n, 1, 30), 0.25, np.float16), "aim": aim,
                        "win_probability": np.linspace(0.625, 0.25, n, dtype=np.float16)[:, None],
                        "net_worth_rank": np.broadcast_to(np.float16([0.5, 0.25, 0.125, 0.125, 0]), (n, 1, 5)),
                        "building_events": np.linspace(0.9, 0.5, BUILDINGS, dtype=np.float16)[None, None].repeat(n, 0)
                        } if n else {}
            answer = ActResult(np.zeros(0, np.int64), policy_debug=policy_debug)
            self.broadcast.add_policy_debug(self.steps, self.buffer, self.slots, answer, self.environment)
            outcome = await self.environment.step(self.buffer.actions[row], self.buffer.observation(self.steps + 1))
            self.broadcast.add_step(outcome, self.environment)
            self.steps += 1


async def test_unwatched_games_are_not_captured() -> None:
    played = SteppedGames()
    await played.begin()
    looked = []
    played.environment.capture = lambda place, camera: bool(looked.append(place))  # type: ignore[method-assign, func-returns-value]
    await played.step(3)
    assert not played.source.sent and not looked
    assert not (played.slots.flags(3) & WANT_POLICY_DEBUG).any()
    played.source.watched = WatchedGames(games=frozenset({"cc" * 8}))  # a game of another process
    await played.step(3)
    assert not played.source.sent and not looked


async def test_watched_game_includes_policy_debug() -> None:
    played = SteppedGames()
    await played.begin()
    await played.step(2)
    played.source.watched = WatchedGames(games=frozenset({"bb" * 8}))
    slots, own, theirs = played.environment.slot_units, *(LAYOUT.groups[f"{whose}_buildings"].start
                                                          for whose in ("allied", "enemy"))

    def beside_their_tower(place: int, side: int) -> Any:
        """Return slots in which one of Dire's buildings is visible, as the second of its kind."""
        units = slots(place, side).copy()
        units[theirs + 1] = slots(place, 1 - side)[own]
        return units

    played.environment.slot_units = beside_their_tower  # type: ignore[method-assign]
    await played.step(FIRST_STEPS + 4)
    assert [(kind, game) for kind, game, _ in played.source.sent] == [("header", "bb" * 8), ("chunk", "bb" * 8)]
    header, schema, _ = read_header(played.source.sent[0][2])
    assert header["about"]["players"] == ["newest", "scripted"]
    steps = list(read_chunk(played.source.sent[1][2], schema))
    assert len(steps) == FIRST_STEPS
    frame = steps[2].frame
    thought = dict(zip(schema.table("thought").fields, frame["thought"][0].tolist(), strict=True))
    available = played.buffer.observations["available"][4, 1, 0, 0]
    assert (thought["known"], thought["value"], thought["version"]) == (3, 500, 10)
    assert abs(thought["win"] / 65535 - 0.625) < 1e-3 and thought["action"] == available[1]
    assert frame["choice"][0].tolist() == [available[0], 64]
    hero = int(frame["hero"][0, schema.table("hero").column("unit")])
    assert frame["aim"][0].tolist() == [hero, 191] and not frame["aim"][1].any()
    assert frame["rank"][0].tolist() == [128, 64, 32, 32, 0]
    (fall, *none) = frame["fall"][:6].tolist()
    assert fall[0] == slots(1, 1)[own] + 1 and fall[1] == round(255 * float(np.float16(0.9 - 0.4 / (BUILDINGS - 1))))
    assert none == [[0, 0]] * 5  # no value for invisible buildings
    assert frame["unit"][fall[0] - 1, schema.table("unit").column("look")] >> 4 & 3 == 1
    # The scripted side has no debug output.
    assert not frame["thought"][5].any() and not frame["rank"][5].any() and not frame["fall"][6:].any()
    played.source.watched = NOTHING_WATCHED
    await played.step(3)
    assert [kind for kind, _, _ in played.source.sent] == ["header", "chunk", "chunk"]  # the remaining chunk only
    assert not (played.slots.flags(played.steps) & WANT_POLICY_DEBUG).any()


@pytest.mark.parametrize("bot_side", [0, 1])
async def test_policy_debug_is_shown_for_the_side_that_acted(bot_side: int) -> None:
    """Three sides act. Their win probabilities are 0.625, 0.4375 and 0.25."""
    played = SteppedGames()
    played.records[1] = GameRecord(Match("bb" * 8, bot="scripted", side=bot_side), played.records[1].earned)
    await played.begin()
    played.source.watched = WatchedGames(games=frozenset({"aa" * 8, "bb" * 8}))
    await played.step(FIRST_STEPS + 1)
    shown = {}
    for kind, game, body in played.source.sent:
        if kind == "header":
            schema = read_header(body)[1]
        else:
            thought = next(iter(read_chunk(body, schema))).frame["thought"]
            win = schema.table("thought").column("win")
            shown[game[:2]] = [round(int(thought[row, win]) / 65535, 3) for row in (0, 5)]
    assert shown == {"aa": [0.625, 0.438], "bb": [0.0 if side == bot_side else 0.25 for side in range(2)]}


async def test_broadcast_error_does_not_stop_games() -> None:
    played = SteppedGames()
    await played.begin()
    played.source.watched = WatchedGames(games=frozenset({"aa" * 8}))
    await played.step(3)

    def broken(place: int, side: int) -> Any:
        raise RuntimeError("a fault")

    played.environment.slot_units = broken  # type: ignore[method-assign]
    await played.step(8)
    assert [(kind, game) for kind, game, _ in played.source.sent] == [("header", "aa" * 8), ("end", "aa" * 8)]
    assert not (played.slots.flags(played.steps) & WANT_POLICY_DEBUG).any()


@pytest.mark.parametrize("successor", ["00" * 8, "dd" * 8])
@pytest.mark.parametrize("is_watched", [False, True], ids=["unwatched", "watched"])
async def test_abandoned_game_leaves_the_live_list(successor: str, is_watched: bool) -> None:
    """The game that follows it in the slot is shown if it is watched too."""
    played = SteppedGames()
    await played.begin()
    played.source.watched = WatchedGames(games=frozenset({"aa" * 8}))
    await played.step(3)
    first, second = played.broadcast.games()
    assert (first["game"], first["players"], first["kind"]) == ("aa" * 8, ["newest", "newest"], "training")
    assert second["players"] == ["newest", "scripted"] and second["kills"] == [0, 0] and second["time"] > 0
    played.records[0] = GameRecord(Match(successor), played.records[0].earned)
    if is_watched:
        played.source.watched = WatchedGames(games=frozenset({"aa" * 8, successor}))
    await played.step(1)
    kinds = [(kind, game) for kind, game, _ in played.source.sent]
    assert kinds == [("header", "aa" * 8), ("chunk", "aa" * 8), ("end", "aa" * 8),
                     *([("header", successor)] if is_watched else [])]


async def test_end_of_a_game_is_announced_with_its_winner() -> None:
    played = SteppedGames()
    await played.begin()
    played.source.watched = WatchedGames(games=frozenset({"aa" * 8, "bb" * 8}))
    await played.step(1)
    seconds = float(played.broadcast._outcome.game_time[1])  # type: ignore[union-attr]
    await played.step(2)
    step = played.environment.step

    async def ending(*arguments: Any) -> StepResult:
        return replace(await step(*arguments), winners=np.array([0, 2], np.uint8))

    played.environment.step = ending  # type: ignore[method-assign]
    await played.step(1)
    kinds = [(kind, game) for kind, game, _ in played.source.sent]
    assert kinds == [("header", "aa" * 8), ("header", "bb" * 8), ("chunk", "bb" * 8), ("end", "bb" * 8)]
    assert played.source.facts[-1] == {"winner": 2}
    chunk = played.source.facts[-2]
    assert chunk["steps"] == 4 and chunk["time"] == round(chunk["time"], 2)
    assert chunk["time"] == pytest.approx(seconds, abs=0.005), "the chunk does not begin with the first watched step"
    assert list(played.broadcast._cameras) == [0]  # the next game in the slot is not watched


async def test_only_watched_slots_ask_for_policy_debug() -> None:
    played = SteppedGames()
    await played.begin()
    played.source.watched = WatchedGames(games=frozenset({"aa" * 8}))
    await played.step(2)
    assert played.slots.watched.tolist() == [True, False]
    played.source.watched = WatchedGames(games=frozenset({"bb" * 8}))
    await played.step(1)
    assert played.slots.watched.tolist() == [False, True]
    played.source.watched = NOTHING_WATCHED
    await played.step(2)
    assert played.slots.watched.tolist() == [False, False]


async def test_rewards_of_watched_games_are_shown_weighted() -> None:
    played = SteppedGames()
    await played.begin()
    played.source.watched = WatchedGames(games=frozenset({"aa" * 8}))
    shown: list[tuple[int, Any]] = []
    record = Camera.record_rewards

    def recording(self: Camera, side: int, values: Any) -> None:
        shown.append((side, np.array(values)))
        record(self, side, values)

    step = played.environment.step

    async def earning(*arguments: Any) -> StepResult:
        result = await step(*arguments)
        signals = np.zeros_like(result.signals)
        signals[0, 1, 0, SIGNALS.index("gold")] = 100.0
        signals[1] = 7.0  # of the game that nobody watches
        return replace(result, signals=signals)

    played.environment.step = earning  # type: ignore[method-assign]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Camera, "record_rewards", recording)
        await played.step(1)
    assert [side for side, _ in shown] == [0, 1] and not shown[0][1].any()
    seconds = played.broadcast._outcome.game_time[0]  # type: ignore[union-attr]
    gold = np.arange(len(SIGNALS)) == SIGNALS.index("gold")
    expected = 100.0 * gold * signal_weights(RewardConfig()) * time_weights(seconds, RewardConfig())
    np.testing.assert_allclose(shown[1][1].reshape(-1), expected.reshape(-1), rtol=1e-5)


async def test_failed_game_is_not_shown_again_but_others_are() -> None:
    played = SteppedGames()
    await played.begin()
    played.source.watched = WatchedGames(games=frozenset({"aa" * 8}))
    capture, failures = played.environment.capture, [RuntimeError("a fault")]

    def failing(slot: int, camera: Any) -> bool:
        if failures:
            raise failures.pop()
        return capture(slot, camera)

    played.environment.capture = failing  # type: ignore[method-assign]
    await played.step(3)
    assert [(kind, game) for kind, game, _ in played.source.sent] == [("header", "aa" * 8), ("end", "aa" * 8)]
    played.source.watched = WatchedGames(games=frozenset({"aa" * 8, "bb" * 8}))
    await played.step(1)
    assert [(kind, game) for kind, game, _ in played.source.sent[2:]] == [("header", "bb" * 8)]


async def test_list_of_live_games_names_versions_and_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    played = SteppedGames()
    played.records[1] = GameRecord(Match("bb" * 8, opponent=4, side=0), played.records[1].earned,
                                   GameVariant("new", "patch-1"))
    monkeypatch.setattr(live_broadcast, "time", SimpleNamespace(monotonic=lambda: 1012.34))
    played.records[0].began, played.records[1].began = 900.0, 1012.29
    assert played.broadcast.games() == []
    await played.begin()
    played.broadcast.update_viewers(played.records, played.slots, played.environment)
    first, second = played.broadcast.games()
    assert first == {"game": "aa" * 8, "run": "trial", "source": "rollout/0", "players": ["newest", "newest"],
                     "kind": "training", "variant": "", "wall_seconds": 112.3}
    assert second["wall_seconds"] == 0.1
    assert second["players"] == ["version-4", "newest"] and second["variant"] == "new"
    await played.step(1)
    first, _ = played.broadcast.games()
    assert first["time"] == pytest.approx(float(played.broadcast._outcome.game_time[0]), abs=0.05)  # type: ignore[union-attr]
    assert first["time"] == round(first["time"], 1) and first["level"] == [1, 1]
    monkeypatch.setattr(live_broadcast, "LISTED_GAMES", 1)
    assert [entry["game"] for entry in played.broadcast.games()] == ["aa" * 8]


@pytest.mark.parametrize(("match", "players"), [
    (Match("aa" * 8), ["newest", "newest"]),
    (Match("aa" * 8, opponent=0, side=0), ["version-0", "newest"]),
    (Match("aa" * 8, opponent=7, side=1), ["newest", "version-7"]),
    (Match("aa" * 8, bot="scripted", side=0), ["scripted", "newest"]),
    (Match("aa" * 8, bot="scripted", side=1), ["newest", "scripted"])])
def test_list_of_live_games_names_the_player_of_each_side(match: Match, players: list[str]) -> None:
    played = SteppedGames()
    played.records[0] = GameRecord(match, played.records[0].earned)
    played.broadcast.update_viewers(played.records, played.slots, played.environment)
    assert played.broadcast.games()[0]["players"] == players
