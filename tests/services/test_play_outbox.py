"""Send queue of a person: frames as differences, keyframes for slow clients, messages in order and never dropped."""

from typing import Any

import pytest

from dota.config import GameConfig
from dota.spectator.camera import UNIT_PER_STEP
from dota.spectator.chunks import read_step
from dota.spectator.schema import Frame, same
from dota.vec_game import Controller, VecGame
from five.protos.v1 import play_pb2
from five.services.play.broadcast import KEYFRAME_EVERY, Broadcast
from five.services.play.outbox import MAX_FRAMES, Outbox
from five.services.play.views import CHANGES, HEADER, KEYFRAME, View, frame_of, header_of

GAME = GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], start_seconds=0.0)


class Filmed:
    """Bot game recorded after each timestep."""

    def __init__(self, *views: View) -> None:
        self.games = VecGame(GAME, 1, 3)
        self.games.controllers[...] = Controller.SCRIPTED
        self.views = views
        self.whole = View(None, UNIT_PER_STEP)
        self.frames = 0

    def write(self, out: dict[str, Any]) -> None:
        self.games.write_seen(0, out)

    def step(self, events: list[dict[str, Any]] | None = None) -> None:
        self.games.step()
        self.frames += 4
        for view in self.views:
            view.record(self.write, self.frames, events or [])


class Reader:
    """Client that reconstructs frames from the messages it reads."""

    def __init__(self, view: View) -> None:
        self.schema = view.schema
        self.frame: Frame = view.schema.empty()
        self.kinds: list[int] = []
        self.frames: list[int] = []
        self.events: list[dict[str, Any]] = []

    def read(self, message: bytes) -> None:
        if message[0] == HEADER:
            self.kinds.append(HEADER)
            return
        kind, engine_frame = frame_of(message)
        if kind == KEYFRAME:
            self.frame = self.schema.empty()
        self.kinds.append(kind)
        self.frames.append(engine_frame)
        self.events += read_step(message[5:], self.schema, self.frame)


async def drained(outbox: Outbox) -> list[play_pb2.JoinResponse]:
    outbox.end()
    return [response async for response in outbox]


async def test_changes_reconstruct_the_view_from_a_keyframe() -> None:
    view = View(0)
    film, outbox, reader = Filmed(view), Outbox(1 << 20), Reader(view)
    outbox.begin(header_of(GAME, {}, {"team": 0, "hero": 0}))
    for _ in range(MAX_FRAMES - 1):
        film.step([{"kind": "test"}])
        outbox.send_frame(view)
    for response in await drained(outbox):
        reader.read(response.frame)
    assert reader.kinds == [HEADER, KEYFRAME, *[CHANGES] * (MAX_FRAMES - 2)]
    assert reader.frames == [4 * (i + 1) for i in range(MAX_FRAMES - 1)]
    assert same(reader.frame, view.frame) and len(reader.events) == MAX_FRAMES - 1
    assert (reader.frame["unit"][:, view.schema.table("unit").column("type")] > 0).sum() > 10


async def test_slow_client_gets_keyframe_events_and_messages() -> None:
    view = View(0)
    film, outbox, reader = Filmed(view), Outbox(1 << 20), Reader(view)
    for i in range(100):
        film.step([{"kind": "test", "i": i}] if i >= 60 else [])
        outbox.send_frame(view)
        outbox.send(play_pb2.JoinResponse(ack=play_pb2.Ack(n=i)))
    assert outbox.frames <= MAX_FRAMES
    responses = await drained(outbox)
    acks = [r.ack.n for r in responses if r.WhichOneof("what") == "ack"]
    assert acks == list(range(100))
    for response in responses:
        if response.WhichOneof("what") == "frame":
            reader.read(response.frame)
    assert reader.kinds[0] == KEYFRAME and len(reader.kinds) <= MAX_FRAMES
    assert same(reader.frame, view.frame)
    assert [e["i"] for e in reader.events] == list(range(60, 100))


async def test_queued_bytes_are_bounded() -> None:
    view = View(0)
    film, outbox = Filmed(view), Outbox(4096)
    for _ in range(50):
        film.step()
        outbox.send_frame(view)
        assert outbox.bytes <= 4096 + len(view.keyframe()) + 1024


async def test_client_that_reads_nothing_is_disconnected() -> None:
    outbox = Outbox(1 << 20)
    for i in range(10_000):
        outbox.send(play_pb2.JoinResponse(ack=play_pb2.Ack(n=i)))
    assert outbox.ended and len([r async for r in outbox]) == 0


async def test_spectators_see_only_delayed_steps() -> None:
    broadcast, film, outbox = Broadcast(10.0), Filmed(), Outbox(1 << 20)
    reader = Reader(View(None))
    broadcast.enter(outbox)
    shown: list[tuple[float, int]] = []
    for i in range(300):
        film.games.step()
        now = i * 4 / 30
        film.whole.record(film.write, 4 * (i + 1), [])
        broadcast.add(film.whole, now)
        while outbox.frames:
            response = await anext(outbox)
            reader.read(response.frame)
            shown.append((now, reader.frames[-1]))
    assert reader.kinds[0] == KEYFRAME and set(reader.kinds[1:]) == {CHANGES}
    for now, engine_frame in shown:
        assert now - (engine_frame - 4) / 30 >= 10.0 - 1e-6
    assert len(shown) > 200
    late = Outbox(1 << 20)
    broadcast.enter(late)
    for i in range(300, 300 + KEYFRAME_EVERY + 1):
        film.games.step()
        film.whole.record(film.write, 4 * (i + 1), [])
        broadcast.add(film.whole, i * 4 / 30)
        while outbox.frames:
            await anext(outbox)
    first = await anext(late)
    assert frame_of(first.frame)[0] == KEYFRAME


def test_truncated_message_is_refused() -> None:
    with pytest.raises(ValueError, match="2 bytes"):
        frame_of(b"\x02\x00")
