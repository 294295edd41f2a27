"""Environments of a rollout: a lost server's games are opened again with other seeds, refusals end the process."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dota.config import GameConfig
from dota.spectator.camera import Camera
from dota.spectator.schema import game_schema, pack_frame
from dota.vec_game import STATS, VecGame
from five.clients.environment import EnvironmentStep, SpectatorView
from five.services.rollout.environment import LocalEnvironment, RemoteEnvironment, StepResult, connect_in_turn
from rapid.rpc.errors import CallFailed, StatusCode
from tests.services.test_dota_env import GAME, LAYOUT, SEED

EPOCH_OVER = "this server is at epoch 2, the request at 1: the run has changed since"
EVERYONE = np.arange(2, dtype=np.int32)
NOBODY = np.zeros((2, 2), np.uint8)
ACTIONS = np.zeros((2, 2, 1, 6), np.int16)


def failed(code: StatusCode, details: str = "why") -> CallFailed:
    return CallFailed(code, "env:50051", "Play", details)


class Client:
    """Client of an environment server that fails where told; its observations are all ``value``."""

    server = "env-0:50051"

    def __init__(self, value: int = 1, fail_open: Exception | None = None) -> None:
        self.value = value
        self.calls: list[Any] = []
        self.failures: list[Exception] = []
        self.seen: dict[int, Any] = {}
        self.lineups: Any = None
        self.closed = False
        self._fail_open = fail_open

    async def open(self, *arguments: Any) -> None:
        self.calls.append(("open", *arguments))
        if self._fail_open is not None:
            raise self._fail_open

    async def reset(self, games: Any, controllers: Any, configs: list[str], variants: Any) -> Any:
        self.calls.append(("reset", games.tolist(), configs, None if variants is None else variants.tolist()))
        return self._step(len(games))

    async def branch(self, game: int, snapshot: bytes, seed: int, building_health: float) -> Any:
        self.calls.append(("branch", game, snapshot, seed, building_health))
        return self._step(1)

    async def step(self, games: Any, actions: Any, watched: Any) -> Any:
        self.calls.append(("step", games.tolist(), watched))
        return self._step(len(games))

    def _step(self, games: int) -> Any:
        if self.failures:
            raise self.failures.pop()
        self.last = EnvironmentStep(
            {"seen": np.full((games, 2, 3), self.value, np.float32)}, np.full((games, 2, 1, 4), 1.0, np.float32),
            np.zeros(games, np.uint8), np.full(games, 2.0, np.float32), np.full((games, 2, 1, 5), 3.0, np.float32),
            STATS, 1, self.seen, self.lineups)
        return self.last

    async def close(self) -> None:
        self.closed = True


class Remote:
    """Environment whose clients the test prepares."""

    def __init__(self, *clients: Client) -> None:
        self.left: list[Any] = list(clients)
        self.environment = RemoteEnvironment(lambda: self.left.pop(0), 2, SEED, "config", 3)
        self.out = {"seen": np.zeros((2, 2, 3), np.float32)}

    async def reset(self, games: Any = EVERYONE, rules: Any = ()) -> Any:
        return await self.environment.reset(games, NOBODY[games], self.out, rules)

    async def step(self) -> StepResult:
        return await self.environment.step(ACTIONS, self.out)

    async def branch(self) -> Any:
        return await self.environment.branch(1, b"state", 7, 0.5, self.out)


async def test_games_are_opened_once_and_each_call_writes_its_rows() -> None:
    client = Client(value=4)
    remote = Remote(client)
    assert remote.environment.server == "" and remote.environment.statistic_names == STATS
    with pytest.raises(ConnectionError, match="no games: call reset first"):
        await remote.step()
    assert await remote.reset() is None
    assert remote.environment.server == "env-0:50051" and remote.out["seen"].min() == 4
    client.value = 5
    await remote.reset(np.array([1], np.int32))
    assert remote.out["seen"][:, 0, 0].tolist() == [4, 5]
    remote.environment.watch({1})
    client.value = 6
    result = await remote.step()
    assert result == StepResult(client.last.signals, client.last.winners, client.last.game_time, client.last.statistics)
    assert remote.out["seen"].min() == 6
    assert client.calls == [("open", 2, SEED, "config", 3), ("reset", [0, 1], [], None), ("reset", [1], [], None),
                            ("step", [0, 1], (1,))]
    await remote.environment.close()
    assert client.closed and remote.environment.server == ""
    await remote.environment.close()  # repeated


@pytest.mark.parametrize("call", ["reset", "step"])
@pytest.mark.parametrize("failure", [
    failed(StatusCode.UNAVAILABLE), failed(StatusCode.INTERNAL), failed(StatusCode.FAILED_PRECONDITION, EPOCH_OVER)],
    ids=["unavailable", "internal", "epoch over"])
async def test_lost_games_are_opened_again_with_another_seed(call: str, failure: CallFailed) -> None:
    first, second = Client(), Client()
    remote = Remote(first, second)
    await remote.reset()
    first.failures = [failure]
    with pytest.raises(ConnectionError, match=failure.details):
        await (remote.reset() if call == "reset" else remote.step())
    assert first.closed and remote.environment.server == ""
    await remote.reset()
    assert second.calls[0] == ("open", 2, SEED + 1, "config", 3)  # the same seed would play the same games again


async def test_lost_games_are_opened_at_the_next_address() -> None:
    clients: dict[str, Any] = {"env-0:50051": Client(fail_open=failed(StatusCode.UNAVAILABLE)), "env-1:50051": Client()}
    dialled: list[str] = []

    def connect(address: str) -> Any:
        dialled.append(address)
        return clients[address]

    environment = RemoteEnvironment(connect_in_turn(connect, list(clients), 2), 2, SEED, "config", 3)
    out = {"seen": np.zeros((2, 2, 3), np.float32)}
    with pytest.raises(ConnectionError):
        await environment.reset(EVERYONE, NOBODY, out)
    await environment.reset(EVERYONE, NOBODY, out)
    assert dialled == ["env-0:50051", "env-1:50051"]


async def test_branch_writes_the_observation_of_its_game() -> None:
    client = Client(value=4)
    remote = Remote(client)
    with pytest.raises(ConnectionError, match="no games: call reset first"):
        await remote.branch()
    await remote.reset()
    client.value, client.lineups = 5, np.array([[[8], [9]]], np.int16)
    assert (await remote.branch()).tolist() == [[8], [9]]
    assert client.calls[-1] == ("branch", 1, b"state", 7, 0.5)
    assert remote.out["seen"][:, 0, 0].tolist() == [4, 5]


@pytest.mark.parametrize("code", [
    StatusCode.INVALID_ARGUMENT, StatusCode.FAILED_PRECONDITION, StatusCode.RESOURCE_EXHAUSTED, StatusCode.UNAVAILABLE])
async def test_refused_branch_is_a_loss(code: StatusCode) -> None:
    first, second = Client(), Client()
    remote = Remote(first, second)
    await remote.reset()
    first.failures = [failed(code)]
    with pytest.raises(ConnectionError, match="why"):
        await remote.branch()
    assert first.closed and remote.environment.server == ""
    await remote.reset()
    with pytest.raises(ConnectionError, match="lineups"):  # malformed
        await remote.branch()
    assert second.closed


@pytest.mark.parametrize("call", ["open", "reset", "step"])
@pytest.mark.parametrize("code", [StatusCode.INVALID_ARGUMENT, StatusCode.FAILED_PRECONDITION])
async def test_refusal_is_not_a_loss(call: str, code: StatusCode) -> None:
    client = Client(fail_open=failed(code) if call == "open" else None)
    remote = Remote(client)
    if call != "open":
        await remote.reset()
        client.failures = [failed(code)]
    with pytest.raises(CallFailed, match="why"):
        await (remote.step() if call == "step" else remote.reset())
    assert client.closed


async def test_failed_open_closes_its_client_and_keeps_the_seed() -> None:
    clients = [Client(fail_open=failed(StatusCode.UNAVAILABLE)), Client(fail_open=ValueError("no config")), Client()]
    remote = Remote(*clients)
    with pytest.raises(ConnectionError, match="why"):
        await remote.reset()
    with pytest.raises(ValueError, match="no config"):
        await remote.reset()
    await remote.reset()
    assert [client.closed for client in clients] == [True, True, False]
    assert clients[2].calls[0] == ("open", 2, SEED, "config", 3)


async def test_each_configuration_is_sent_once() -> None:
    client = Client()
    remote = Remote(client)
    other, third = GameConfig(patch="7.19"), GameConfig(patch="7.21d")
    await remote.reset(rules=[None, None])
    await remote.reset(rules=[other, None])
    await remote.reset(rules=[third, GameConfig(patch="7.21d")])
    await remote.reset(rules=[third, other])
    texts = [other.model_dump_json(), third.model_dump_json()]
    assert [call[2:] for call in client.calls if call[0] == "reset"] == [
        ([], None), ([texts[0]], [1, 0]), ([texts[1]], [1, 1]), ([texts[1], texts[0]], [1, 2])]


async def test_watched_slot_is_captured_once_it_has_arrived() -> None:
    client = Client()
    remote = Remote(client)
    await remote.reset()
    recorded: list[tuple[Any, Any]] = []

    def record(write: Any, events: Any) -> None:
        out = schema.empty()
        write(out)
        recorded.append((out, events))

    camera: Any = SimpleNamespace(record_frame=record)
    environment, schema = remote.environment, game_schema(policy_debug=False)
    frame, slots = schema.empty(), np.array([[3], [4]], np.int16)
    VecGame(GAME, 1, SEED).write_seen(0, frame)
    packed = pack_frame(schema, frame)
    client.seen = {1: SpectatorView(schema.hash, packed, slots, b'[{"kind": "kill"}]')}
    assert not environment.capture(1, camera) and environment.slot_units(1, 0) is None
    await remote.step()
    assert environment.capture(1, camera) and not environment.capture(0, camera)
    ((shown, events),) = recorded
    assert events == [{"kind": "kill"}]
    assert all(np.array_equal(shown[name], array) for name, array in frame.items())
    assert [environment.slot_units(1, side).tolist() for side in (0, 1)] == [[3], [4]]  # type: ignore[union-attr]
    client.seen = {1: SpectatorView(b"another schema", packed, slots, b"")}  # a server of another release
    await remote.step()
    assert not environment.capture(1, camera)
    client.seen = {1: SpectatorView(schema.hash, packed, slots, b"")}
    await remote.step()
    assert environment.capture(1, camera) and recorded[-1][1] == []


async def test_local_environment_plays_in_this_process() -> None:
    local = LocalEnvironment(VecGame(GAME, 2, SEED))
    assert local.server == "" and local.statistic_names == STATS
    out = LAYOUT.allocate(2, 2)
    lineups = await local.reset(EVERYONE, NOBODY, out)
    assert lineups is not None and lineups.shape == (2, 2, 1)
    result = await local.step(ACTIONS, out)
    assert result.winners.tolist() == [0, 0] and result.game_time[0] > GAME.start_seconds
    local.watch([0])
    camera = Camera(GAME, {}, lambda chunk, facts: None)
    assert local.capture(1, camera) and local.slot_units(1, 0) is not None
    await local.close()


@pytest.mark.parametrize(("rules", "seconds"), [
    ((), [-10.0, -10.0]), ((None, None), [-10.0, -10.0]), ((None, -30.0), [-10.0, -30.0]),
    ((-20.0, -30.0), [-20.0, -30.0])])
async def test_local_games_follow_their_own_configuration(rules: tuple[float | None, ...], seconds: list[float]
                                                          ) -> None:
    game = GAME.model_copy(update={"start_seconds": -10.0})
    local = LocalEnvironment(VecGame(game, 2, SEED))
    out = LAYOUT.allocate(2, 2)
    await local.reset(EVERYONE, NOBODY, out, [
        None if start is None else game.model_copy(update={"start_seconds": start}) for start in rules])
    result = await local.step(ACTIONS, out)
    await local.close()
    assert result.game_time.tolist() == pytest.approx([start + 4 / 30 for start in seconds], abs=0.01)
