"""Targets of messages between services: tensors, responses as clients decode them, and live channel messages."""

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError, Message

from dota import packing
from dota.config import GameConfig, ObservationConfig
from dota.spaces import Layout
from dota.vec_game import VecGame
from five.clients import wire
from five.clients.environment import EnvironmentClient
from five.clients.inference import InferenceClient
from five.clients.raw_tensor_set import TensorSetReader
from five.protos.v1 import (
    env_pb2,
    evaluator_pb2,
    experience_pb2,
    inference_pb2,
    opponents_pb2,
    play_pb2,
    tensors_pb2,
)
from five.services.controller.games.play_socket import parse_message, response_json
from five.services.dota_env.game_batch import GameBatch
from five.services.dota_env.service import _response
from five.services.play.orders import order_of
from five.services.play.views import frame_of
from rapid import codec
from rapid.config import RpcConfig
from rapid.packed_array import PackedArray
from rapid.rpc.errors import CallFailed, RpcError
from rapid.store.live_channel import LiveMessage, decode_message
from tests.fuzz.mutators import mutate_json, mutate_message, within
from tests.fuzz.targets import Target

GAME = GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], observation=ObservationConfig(
    allied_creeps=1, neutral_creeps=0, buildings=1, wards=0, couriers=0, hero_modifiers=1, unit_modifiers=0, pickups=0,
    minimap=1, nearby_map=2, passability=2))
LAYOUT = Layout(GAME)
RPC = RpcConfig(require_token=False)
LIMIT = 1 << 20  # bytes of decoded arrays


def register_codec() -> None:
    """Install the core's codec, with which the services decode."""
    codec.register(packing.pack_f16, packing.unpacked_f16, packing.pack_changes)


def arrays() -> dict[str, Any]:
    """Return arrays of every dtype of the wire format."""
    rng = np.random.default_rng(1)
    found: dict[str, Any] = {name: rng.integers(0, 2, (4, 3, 2)).astype(dtype) for name, dtype in wire.DTYPES.items()}
    found["float16"] = np.where(rng.random((8, 20)) < 0.2, 1.5, 0).astype(np.float16)
    return {**found, "empty": np.zeros((0, 5), np.float32), "one": np.float32(2.5).reshape(())}


def tensor_set(zstd: bool, changes: bool = False) -> bytes:
    """Return a push request with arrays in the sparse, plain, compressed or changes encodings."""
    given = {n: a for n, a in arrays().items() if not changes or (a.ndim and a.dtype != np.bool_ and n != "empty")}
    changed = [n for n, a in given.items() if changes and a[0].nbytes % 2 == 0]
    return wire.serialize_with_set(experience_pb2.PushRequest(run="trial", samples=4), "tensors", given, "layout",
                                   ["float16"], zstd, changed, 4)


def decode_tensors(data: bytes) -> None:
    """Decode a TensorSet by protobuf and by the parser without copies, in every form; both must agree."""
    message = parse(experience_pb2.PushRequest, data)
    reader = TensorSetReader(experience_pb2.PushRequest, "tensors")
    whole = None
    for _ in range(2):  # the second time from the cache
        try:
            whole = reader.tensors(reader.split(data)[1])
        except ValueError:
            whole = None
    outcomes = []
    for form in (message.tensors, whole):
        for decode in (wire.decode_set, wire.decode_packed_set, wire.decode_stored_set):
            outcomes.append(_outcome(decode, form) if form is not None else None)
    if whole is not None and [t.name for t in message.tensors.tensors] == [t.name for t in whole.tensors]:
        assert _same(outcomes[0], outcomes[3]), "the two parsers of a TensorSet disagree"
    decoded = outcomes[0]
    if decoded is None:
        raise ValueError("refused")
    again = tensors_pb2.TensorSet()
    wire.fill_tensor_set(again, decoded, message.tensors.layout_hash)
    assert _same(decoded, wire.decode_set(again, None)), "a TensorSet changes when it is encoded again"
    for name, packed in (outcomes[1] or {}).items():
        unpacked = wire.unpack(packed) if isinstance(packed, PackedArray) else packed
        assert unpacked.tobytes() == decoded[name].tobytes(), "a packed array differs from the decoded one"


def _outcome(decode: Any, message: Any) -> dict[str, Any] | None:
    try:
        return dict(decode(message, None, LIMIT))
    except ValueError:
        return None


def _same(a: Mapping[str, Any] | None, b: Mapping[str, Any] | None) -> bool:
    if a is None or b is None:
        return a is b
    return a.keys() == b.keys() and all(
        a[n].tobytes() == b[n].tobytes() and a[n].shape == b[n].shape and a[n].dtype == b[n].dtype for n in a)


def parse(kind: Any, data: bytes) -> Any:
    """Parse a message as gRPC does, which refuses a malformed one."""
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise ValueError(str(error)) from None


def sparse_codec(data: bytes) -> None:
    """Decode sparse bytes natively and by the definition in numpy; both must agree."""
    count = int.from_bytes(data[:2], "little")
    body = data[2:]
    found: list[Any] = []
    for unpack in (packing.unpacked_f16, codec.unpack_sparse):
        try:
            found.append(unpack(body, count))
        except ValueError:
            found.append(None)
    if found[0] is None or found[1] is None:
        # Only the native codec refuses a stored zero.
        assert found[0] is None, "the native codec accepts bytes that the definition refuses"
        raise ValueError("refused")
    assert found[0].tobytes() == found[1].tobytes(), "the native codec and its definition differ"
    for rows in (1, 2, 8):
        if count % rows == 0:
            assert packing.join_f16(packing.split_f16(body, rows, count // rows), count // rows) == packing.pack_f16(
                found[0])


def _sparse_seeds() -> list[bytes]:
    values = np.where(np.arange(160) % 7 == 0, 1.5, 0).astype(np.float16)
    return [n.to_bytes(2, "little") + packing.pack_f16(values[:n].copy()) for n in (0, 1, 8, 19, 160)]


# ---- responses, as clients decode them ---------------------------------------------------------------------------


def play_response() -> bytes:
    """Return a response of the environment service."""
    games = GameBatch(VecGame(GAME, 2, 1, observations="packed"))
    output = games._output(np.arange(2, dtype=np.int32), 0.0)
    output.seen[0] = games._spectator_view(0)
    games.close()
    return _response(output, LAYOUT.hash, 1, games.seen_schema)


def decode_play_response(data: bytes) -> None:
    """Decode a response of the environment service."""
    message = parse(env_pb2.PlayResponse, data)
    for packed in (False, True):
        EnvironmentClient("games", RPC, 1, LAYOUT.hash, epoch=1, packed=packed)._step(message)


def act_response() -> bytes:
    """Return a response of the inference service for two sessions."""
    message = inference_pb2.ActResponse(
        request_id=3, actions=np.zeros((2, 1, 6), np.int16).tobytes(), log_probabilities=bytes(8), values=bytes(8),
        versions=np.array([4, 4]).tobytes(), queue_us=3, forward_us=4, reward_std=1.0, epoch=1)
    for part in (message.states, message.auxiliary, message.policy_debug):
        wire.fill_tensor_set(part, {"h": np.ones((1, 2), np.float32)}, "layout")
    return message.SerializeToString()


def decode_act_response(data: bytes) -> None:
    """Decode a response of the inference service."""
    InferenceClient(["localhost:1"], RPC, "layout", epoch=1)._result(parse(inference_pb2.ActResponse, data), 2, 0.0)


JOIN_RESPONSES = (
    play_pb2.JoinResponse(frame=b"\x02\3\0\0\0abc"), play_pb2.JoinResponse(ack=play_pb2.Ack(n=1, ok=True)),
    play_pb2.JoinResponse(state=play_pb2.GameState(game="0" * 32, players=["a", "b"], seats=[play_pb2.Seat(who="a")])),
    play_pb2.JoinResponse(ping=play_pb2.Ping(who="a", at=play_pb2.MapPoint(x=1, y=2))),
    play_pb2.JoinResponse(refused=play_pb2.Refused(reason="full")),
    play_pb2.JoinResponse(end=play_pb2.End(winner=1, rating=play_pb2.Rating(mu=1, sigma=2))))


JOIN_REQUESTS = (
    play_pb2.JoinRequest(order=play_pb2.Order(n=1, kind="move", at=play_pb2.MapPoint(x=3, y=4))),
    play_pb2.JoinRequest(hand=play_pb2.HeroControl(hero=3, held=True)),
    play_pb2.JoinRequest(ping=play_pb2.MapPing(at=play_pb2.MapPoint(x=3))),
    play_pb2.JoinRequest(join=play_pb2.Join(run="trial", game="0" * 32)))


def decode_join_response(data: bytes) -> None:
    """Convert a message of the play service to what a browser gets."""
    message = parse(play_pb2.JoinResponse, data)
    if message.WhichOneof("what") == "frame":
        frame_of(message.frame)
    else:
        json.dumps(response_json(message))


# Messages that no code of the project decodes beyond protobuf: each must survive encoding.
PLAIN: tuple[tuple[Message, ...], ...] = (
    (evaluator_pb2.PlayMatchResponse(won=1, lost=2, statistic_names=["kills"], statistics=[1.5],
                                     opponent_statistics=[2.5]),),
    (evaluator_pb2.GetRatingsResponse(ratings=[evaluator_pb2.VersionRating(name="version-3", mu=1.5)], epoch=1),),
    (experience_pb2.PushResponse(segment_id="a", verdict=experience_pb2.PUSH_VERDICT_ACCEPTED, epoch=1),),
    (inference_pb2.GetModelResponse(run="trial", newest_version=3, resident_versions=[1, 3]),),
    (opponents_pb2.AssignOpponentResponse(version=-1, side=1, epoch=1),),
    (opponents_pb2.ReportResultResponse(counted=True, epoch=1),),
    (opponents_pb2.GetPoolResponse(entries=[opponents_pb2.PoolEntry(version=3, quality=0.5)]),),
    (play_pb2.OfferResponse(hero_pool=["lion"], versions=[3], bots=["easy"]),),
    (play_pb2.OpenResponse(game="0" * 32, state=play_pb2.GameState(players=["a"])),),
    (play_pb2.ListGamesResponse(games=[play_pb2.GameState(game="0" * 32)]),),
    (play_pb2.CloseResponse(),),
    (play_pb2.RecordingsResponse(recordings=[play_pb2.RecordedGame(game="0" * 32, kills=[1, 2])]),),
    (play_pb2.RecordingResponse(data=b"FIVEVIEW", size=8),),
)


def _decode_plain(kind: Any) -> Any:
    def decode(data: bytes) -> None:
        message = parse(kind, data)
        if message == message:  # no NaN
            assert kind.FromString(message.SerializeToString()) == message
    return decode


# ---- orders and live games ------------------------------------------------------------------------------------------

BROWSER = (
    {"type": "order", "n": 1, "hero": 0, "kind": "move", "at": [3, 4]},
    {"type": "order", "n": 2, "kind": "cast_unit", "target": [3, 1], "slot": 2, "to": -1, "queue": True},
    {"type": "order", "n": 3, "kind": "buy", "item": "tango"}, {"type": "ping", "at": [1, 65535]},
    {"type": "hand", "hero": 3, "held": False}, {"type": "leave"})


def decode_browser(data: bytes) -> None:
    """Convert a browser's text to a request, and an order to the core's form."""
    request = parse_message(data.decode("utf-8", "replace"))
    if request is not None and request.HasField("order"):
        order_of(request.order, -8000.0, -8000.0, 16000.0)


def decode_join(data: bytes) -> None:
    """Convert the order of a person's request to the core's form."""
    request = parse(play_pb2.JoinRequest, data)
    if request.HasField("order") and order_of(request.order, -8000.0, -8000.0, 16000.0) is None:
        raise ValueError("refused")


def decode_live(data: bytes) -> None:
    """Decode a message of the live channel; an accepted one survives encoding."""
    message = decode_message(data)
    assert decode_message(message.packed()) == message


def _live_parts(data: bytes) -> bytes:
    (size,) = struct.unpack_from("<I", data)
    return data[4:4 + size]


def _live_packed(data: bytes, head: bytes) -> bytes:
    (size,) = struct.unpack_from("<I", data)
    return struct.pack("<I", len(head)) + head + data[4 + size:]


LIVE = (LiveMessage("header", "rollout/0", "ab" * 8, b"FIVEVIEW"), LiveMessage("chunk", "rollout/0", "ab" * 8, b"x"),
        LiveMessage("end", "evaluator/1", "ab" * 8),
        LiveMessage("games", "rollout/0", facts={"games": [{"game": "ab" * 8, "time": 3.5}]}))


def _name(kind: Any) -> str:
    return str(kind.DESCRIPTOR.full_name)


TARGETS = [
    Target("tensors", "wire", decode_tensors,
           lambda: [tensor_set(False), tensor_set(True), tensor_set(False, True), tensor_set(True, True)],
           messages=("five.v1.TensorSet", "five.v1.Tensor"), mutate=mutate_message(experience_pb2.PushRequest),
           decoders=("five/clients/wire.py:_decompress", "five/clients/wire.py:_decode_plain",
                     "five/clients/wire.py:decode_bytes", "five/clients/raw_tensor_set.py:TensorSetReader.split",
                     "five/clients/raw_tensor_set.py:_tensor", "rapid/packed_array.py:PackedArray.__init__")),
    Target("sparse", "wire", sparse_codec, _sparse_seeds,
           decoders=("rapid/codec.py:unpack_sparse", "dota/packing.py:unpack_f16", "dota/packing.py:split_f16")),
    Target("play-response", "wire", decode_play_response, lambda: [play_response()], (ValueError, CallFailed, RpcError),
           ("five/clients/environment.py:EnvironmentClient._decode",), (_name(env_pb2.PlayResponse),),
           mutate_message(env_pb2.PlayResponse)),
    Target("act-response", "wire", decode_act_response, lambda: [act_response()], (ValueError, CallFailed, RpcError),
           ("five/clients/inference.py:InferenceClient._result",), (_name(inference_pb2.ActResponse),),
           mutate_message(inference_pb2.ActResponse)),
    Target("join-response", "wire", decode_join_response, lambda: [m.SerializeToString() for m in JOIN_RESPONSES],
           (ValueError,), ("five/services/play/views.py:frame_of",), (_name(play_pb2.JoinResponse),),
           mutate_message(play_pb2.JoinResponse)),
    Target("join-request", "wire", decode_join, lambda: [m.SerializeToString() for m in JOIN_REQUESTS],
           messages=(_name(play_pb2.JoinRequest),), mutate=mutate_message(play_pb2.JoinRequest)),
    Target("browser-message", "wire", decode_browser, lambda: [json.dumps(m).encode() for m in BROWSER],
           decoders=("five/services/controller/games/play_socket.py:parse_message",), mutate=mutate_json),
    Target("live-message", "wire", decode_live, lambda: [message.packed() for message in LIVE],
           decoders=("rapid/store/live_channel.py:decode_message",),
           mutate=within(_live_parts, _live_packed, mutate_json)),
    *(Target(f"plain-{type(examples[0]).DESCRIPTOR.name}", "wire", _decode_plain(type(examples[0])),
             lambda examples=examples: [m.SerializeToString() for m in examples],  # type: ignore[misc]
             messages=(_name(type(examples[0])),), mutate=mutate_message(type(examples[0]))) for examples in PLAIN),
]
