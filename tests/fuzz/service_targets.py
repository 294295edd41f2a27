"""Targets of the servicers: streams of requests as gRPC delivers them, to real servicers.

Any request is answered or refused with a status code that names its reason, never INTERNAL.
"""

import asyncio
import functools
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import redis
import torch

from dota.vec_game import STATS, VecGame
from five.agent.config import BufferConfig, LeagueConfig, RatingConfig
from five.clients import wire
from five.clients.inference import CLOSE, REPLAY, RESET, RESTORE, WANT_POLICY_DEBUG, WANT_STATE
from five.protos.v1 import env_pb2, evaluator_pb2, experience_pb2, inference_pb2, opponents_pb2, play_pb2
from five.run.config.play import PlayConfig
from five.services.dota_env.service import EnvService
from five.services.evaluator.rating_loop import RatingLoop
from five.services.evaluator.service import PLAYERS, EvaluatorService
from five.services.inference.batcher import Batcher, BatcherOptions
from five.services.inference.models import Models
from five.services.inference.service import InferenceService
from five.services.inference.sessions import SessionTable
from five.services.opponents.pool import OpponentPool
from five.services.opponents.service import OpponentService
from five.services.optimizer.experience_service import ExperienceService
from five.services.play.recordings import GameRecording
from five.services.play.service import PlayService
from five.services.rollout.sender import delta_encoded_arrays
from rapid.embedded_redis import EmbeddedRedis
from rapid.rpc.errors import StatusCode, Unavailable, status_of
from rapid.store.series import Series
from rapid.store.state import RunState
from tests.fuzz.message_targets import GAME, LAYOUT, parse
from tests.fuzz.mutators import mutate_stream
from tests.fuzz.targets import Target, join_messages, memory_folder, split_messages
from tests.services import counting, optimizer_cases
from tests.services.play_server import filler

RUN = "trial"
BUFFER = BufferConfig(capacity_samples=32, minimum_samples=1, max_age_versions=3)


class Refused(Exception):
    """A servicer refused a request with a status code other than INTERNAL."""


async def _collect(answers: AsyncIterator[Any], most: int = 64) -> int:
    count = 0
    async for _ in answers:
        count += 1
        if count == most:
            break
    return count


async def _stream(requests: Sequence[Any]) -> AsyncIterator[Any]:
    for request in requests:
        yield request


def call(work: Any) -> None:
    """Run a call of a servicer. Raises Refused for one that is refused, and an unexpected exception as it is."""
    try:
        asyncio.run(asyncio.wait_for(work, 30))
    except Exception as error:
        if status_of(error)[0] is StatusCode.INTERNAL:
            raise
        raise Refused(str(error)) from None


@functools.cache
def redis_url() -> str:
    """Return the URL of a Redis that ends with this process."""
    server = EmbeddedRedis(memory_folder(), append_only=False).start()
    redis_url.server = server  # type: ignore[attr-defined]
    return str(server.url)


# ---- dota-env -------------------------------------------------------------------------------------------------------


def env_requests() -> list[bytes]:
    """Return streams of requests to the environment service."""
    which = np.array([0, 1], np.int32).tobytes()
    create = env_pb2.PlayRequest(create=env_pb2.CreateGames(games=2, seed=5, layout_hash=LAYOUT.hash, epoch=1))
    configured = env_pb2.PlayRequest(create=env_pb2.CreateGames(
        games=2, game_config=GAME.model_dump_json(), layout_hash=LAYOUT.hash, threads=1, epoch=1))
    step = env_pb2.PlayRequest(step=env_pb2.StepGames(
        games=which, actions=np.ones((2, 2, 1, 6), np.int16).tobytes(), watched=which[:4]))
    reset = env_pb2.PlayRequest(reset=env_pb2.ResetGames(
        games=which[:4], controllers=bytes([0, 1]), game_configs=[GAME.model_dump_json()], variants=bytes([1])))
    branch = env_pb2.PlayRequest(branch=env_pb2.BranchGame(game=1, seed=3, building_health=0.5))
    return [join_messages(m.SerializeToString() for m in stream)
            for stream in ([create, step, reset, step], [configured, reset, branch, step])]


@functools.cache
def env_snapshot() -> bytes:
    """Return a snapshot, which is larger than an input may be."""
    return VecGame(GAME, 1, observations=False).snapshot(0)


def ask_env(data: bytes) -> None:
    """Send a stream to the environment service. A branch without a snapshot gets a valid one."""
    service = EnvService(GAME, threads=1, max_games=4, max_streams=2, idle_seconds=10.0)
    requests = [parse(env_pb2.PlayRequest, message) for message in split_messages(data, 6)]
    for request in requests:
        if request.WhichOneof("kind") == "branch" and not request.branch.snapshot:
            request.branch.snapshot = env_snapshot()
    try:
        call(_collect(service.Play(_stream(requests), None)))
    finally:
        assert service.games == 0, "games of an ended stream are still counted"


# ---- inference ------------------------------------------------------------------------------------------------------


def act_requests() -> list[bytes]:
    """Return streams of requests to the inference service."""
    def request(flags: list[int], sessions: list[int], restored: int = 0, replayed: int = 0, zstd: bool = False
                ) -> bytes:
        n = len(sessions)
        message = inference_pb2.ActRequest(
            request_id=1, sessions=np.array(sessions, np.int64).tobytes(), epoch=1,
            policies=np.full(n, -1, np.int64).tobytes(), flags=bytes(flags),
            replayed_actions=np.zeros((replayed, 1, 6), np.int16).tobytes())
        if restored:
            wire.fill_tensor_set(message.states, {
                name: np.zeros((restored, *shape), np.float32) for name, (shape, _) in counting.STATE_SPECS.items()},
                counting.LAYOUT.hash)
        observations = {name: np.zeros((n, *shape), dtype) for name, (shape, dtype)
                        in counting.LAYOUT.array_specs().items()}
        return wire.serialize_with_set(message, "observations", observations, counting.LAYOUT.hash,
                                       ("shared", "private"), zstd)
    return [join_messages([request([RESET], [1]), request([WANT_STATE | CLOSE], [1])]),
            join_messages([request([RESTORE, RESET], [1, 2], 1, zstd=True), request([REPLAY, 0], [1, 2], 0, 1)]),
            join_messages([request([RESET | WANT_POLICY_DEBUG], [7])])]


@functools.cache
def inference() -> InferenceService:
    """Return a servicer with a policy, in its own thread."""
    models = Models(counting.Versions(0, 7), counting.CountingBuilder(), past_bytes=2, poll_seconds=60)
    models.refresh()
    table = SessionTable(counting.STATE_SPECS, torch.device("cpu"), 1000, 60.0)
    batcher = Batcher(models, table, BatcherOptions(max_batch=16, request_timeout_seconds=5.0))
    batcher.start()
    return InferenceService(RUN, "schema", counting.LAYOUT.hash, counting.LAYOUT.array_specs(), counting.STATE_SPECS,
                            counting.HEROES, models, batcher, epoch=1, read_ahead=1 << 20)


def ask_inference(data: bytes) -> None:
    """Send a stream to the inference service."""
    requests = [parse(inference_pb2.ActRequest, message) for message in split_messages(data, 4)]
    call(_collect(inference().Act(_stream(requests), None)))


def ask_model(data: bytes) -> None:
    """Send requests for the model to the inference service."""
    for message in split_messages(data, 4):
        call(inference().GetModel(parse(inference_pb2.GetModelRequest, message), None))


# ---- optimizer ------------------------------------------------------------------------------------------------------


def push_requests() -> list[bytes]:
    """Return streams of segments to the optimizer."""
    def request(identity: str, seed: int, plain: bool = False, zstd: bool = False) -> bytes:
        arrays = optimizer_cases.segment(1, seed=seed)
        changes = () if plain else delta_encoded_arrays(optimizer_cases.LAYOUT)
        head = experience_pb2.PushRequest(
            segment_id=identity, run=RUN, rollout="r", samples=1, reward_sum=1.0, reward_square_sum=2.0,
            reward_count=4, created_at=3.0, epoch=1)
        return wire.serialize_with_set(head, "tensors", arrays, optimizer_cases.LAYOUT.hash, ("shared", "private"),
                                       zstd, changes, optimizer_cases.UNROLL)
    return [join_messages([request("a", 1), request("b", 2)]), join_messages([request("c", 3, plain=True)]),
            join_messages([request("d", 4, zstd=True)])]


def push_segments(data: bytes) -> None:
    """Send a stream to the optimizer, and collate a batch of the admitted samples."""
    intake = optimizer_cases.intake(BUFFER)
    service = ExperienceService(RUN, optimizer_cases.LAYOUT.hash, optimizer_cases.UNROLL, optimizer_cases.STEP_SPECS,
                                optimizer_cases.SAMPLE_SPECS, intake, epoch=1, active=lambda: False)
    try:
        call(_collect(service.Push(_stream(split_messages(data, 4)), None)))
    finally:
        held = len(intake.buffer)
        if held:
            assert intake.buffer.sample(held, 0) is not None


# ---- unary services -------------------------------------------------------------------------------------------------


@functools.cache
def _opponents() -> OpponentService:
    pool = OpponentPool(RunState(redis.Redis.from_url(redis_url()), RUN),
                        LeagueConfig(past_opponent_share=0.5, add_every_versions=10), seed=0)
    for version in (0, 10):
        pool.on_version(version)
    return OpponentService(RUN, pool, epoch=1)


@functools.cache
def _evaluator() -> EvaluatorService:
    def away() -> Any:
        raise Unavailable("no inference server")

    client = redis.Redis.from_url(redis_url())
    state, config = RunState(client, RUN), RatingConfig()
    ratings = RatingLoop(config, state, Series(client, RUN), {n: PLAYERS[n] for n in config.anchors}, STATS,
                         lambda: None, lambda version: None, lambda version: True)
    return EvaluatorService(RUN, GAME, 1, lambda: None, away, ratings, _folder(), 1,
                            match_games=state.table("match_games"))


@functools.cache
def _folder() -> Path:
    return memory_folder()


class _NoAgents:
    """Inference of games in which only bots play."""

    async def act(self, *_: Any, **__: Any) -> Any:
        raise Unavailable("no inference server")


def _play() -> PlayService:
    service = PlayService(RUN, 1, GAME, PlayConfig(games=1), _NoAgents(), lambda: [7], filler, lambda ended: {},
                          folder=_folder())
    service.recordings.store(GameRecording("0" * 32, ["a"], ["a"], 1.0, 2.0, 1, [0, 0], 9, b"recording"))
    return service


PLAY_CALLS: dict[str, tuple[Any, list[Any]]] = {
    "Offer": (play_pb2.OfferRequest, [play_pb2.OfferRequest(run=RUN)]),
    "Open": (play_pb2.OpenRequest, [
        play_pb2.OpenRequest(run=RUN, epoch=1, who="ada", heroes=[0], mates="scripted", against="random", seed=3),
        play_pb2.OpenRequest(run=RUN, who="ada", team=1, heroes=[0], mates="random", against="random",
                             lineup=[play_pb2.Team(heroes=["nevermore"]), play_pb2.Team(heroes=["nevermore"])])]),
    "List": (play_pb2.ListGamesRequest, [play_pb2.ListGamesRequest(run=RUN)]),
    "Recordings": (play_pb2.RecordingsRequest, [play_pb2.RecordingsRequest(run=RUN)]),
    "Recording": (play_pb2.RecordingRequest, [play_pb2.RecordingRequest(run=RUN, game="0" * 32, offset=2)]),
    "Close": (play_pb2.CloseRequest, [play_pb2.CloseRequest(run=RUN, game="0" * 32, who="ada")]),
}
CALLS: dict[str, tuple[Any, str, Any, list[Any]]] = {
    "assign-opponent": (_opponents, "AssignOpponent", opponents_pb2.AssignOpponentRequest,
                        [opponents_pb2.AssignOpponentRequest(run=RUN, game_id="a", epoch=1)]),
    "report-result": (_opponents, "ReportResult", opponents_pb2.ReportResultRequest, [
        opponents_pb2.ReportResultRequest(run=RUN, game_id="a", opponent_version=10, outcome=1, game_seconds=3,
                                          epoch=1)]),
    "get-pool": (_opponents, "GetPool", opponents_pb2.GetPoolRequest, [opponents_pb2.GetPoolRequest(run=RUN)]),
    "play-match": (_evaluator, "PlayMatch", evaluator_pb2.PlayMatchRequest, [
        evaluator_pb2.PlayMatchRequest(run=RUN, version=3, against="random", games=2, seed=3, epoch=1, match="m")]),
    "get-ratings": (_evaluator, "GetRatings", evaluator_pb2.GetRatingsRequest,
                    [evaluator_pb2.GetRatingsRequest(run=RUN)]),
}


def _ask(make: Any, method: str, kind: Any) -> Any:
    def ask(data: bytes) -> None:
        for message in split_messages(data, 4):
            call(getattr(make(), method)(parse(kind, message), None))
    return ask


def ask_play(method: str, kind: Any) -> Any:
    """Return a function that sends requests to a play service and ends its games."""
    async def all_of(messages: list[Any]) -> None:
        service = _play()
        try:
            for message in messages:
                await getattr(service, method)(message, None)
        finally:
            await service.drain()

    def ask(data: bytes) -> None:
        call(all_of([parse(kind, message) for message in split_messages(data, 2)]))
    return ask


def _streams(messages: list[Any]) -> Any:
    return lambda: [join_messages([m.SerializeToString()]) for m in messages]


REFUSALS = (ValueError, Refused)
TARGETS = [
    Target("env-stream", "wire", ask_env, env_requests, REFUSALS,
           ("five/services/dota_env/service.py:game_config",), ("five.v1.PlayRequest",),
           mutate_stream(env_pb2.PlayRequest)),
    Target("act-stream", "wire", ask_inference, act_requests, REFUSALS, (), ("five.v1.ActRequest",),
           mutate_stream(inference_pb2.ActRequest)),
    Target("get-model", "wire", ask_model, _streams([inference_pb2.GetModelRequest(wanted_versions=[3, 4])]), REFUSALS,
           (), ("five.v1.GetModelRequest",), mutate_stream(inference_pb2.GetModelRequest)),
    Target("push-stream", "wire", push_segments, push_requests, REFUSALS,
           ("five/services/optimizer/stored_arrays.py:StoredArrays.from_message",), ("five.v1.PushRequest",),
           mutate_stream(experience_pb2.PushRequest)),
    *(Target(name, "wire", _ask(make, method, kind), _streams(examples), REFUSALS, (),
             (str(kind.DESCRIPTOR.full_name),), mutate_stream(kind))
      for name, (make, method, kind, examples) in CALLS.items()),
    *(Target(f"play-{method.lower()}", "wire", ask_play(method, kind), _streams(examples), REFUSALS, (),
             (str(kind.DESCRIPTOR.full_name),), mutate_stream(kind))
      for method, (kind, examples) in PLAY_CALLS.items()),
]
