"""The reader delivers each frame of its port, reconnects, and ends a cut frame after a silence."""

import socket
from collections.abc import Iterator

import pytest

from five.local.cluster import free_ports
from five.real_client.frames import CUT_BYTES, Frame
from five.real_client.world_state_reader import WorldStateReader, is_port_used, wait_until_free
from tests.real_client.frame_server import FrameServer
from tests.real_client.test_frames import framed, world_state
from tests.waiting import eventually


@pytest.fixture
def server() -> Iterator[FrameServer]:
    server = FrameServer()
    yield server
    server.close()


@pytest.fixture
def reader(server: FrameServer) -> Iterator[WorldStateReader]:
    reader = WorldStateReader(server.port, 2)
    yield reader
    reader.close()


def receive(reader: WorldStateReader, count: int) -> list[Frame]:
    frames: list[Frame] = []
    while len(frames) < count:
        got = reader.receive(60)
        assert got, f"{len(frames)} frames, then none"
        frames += got
    return frames


def test_frames_arrive_in_order(server: FrameServer, reader: WorldStateReader) -> None:
    for i in range(20):
        server.send(framed(world_state(i)))
    assert [frame.dota_time for frame in receive(reader, 20)] == list(range(20))
    assert reader.receive(0) == [] and reader.receive(0.01) == []


def test_a_lost_connection_is_made_again(server: FrameServer, reader: WorldStateReader) -> None:
    for i in range(3):
        server.send(framed(world_state(i)) + framed(world_state(99))[:700])  # the next frame breaks off
        assert [frame.dota_time for frame in receive(reader, 1)] == [i]
        server.disconnect()
    server.send(framed(world_state(5)))
    assert [frame.dota_time for frame in receive(reader, 1)] == [5] and reader.connections == 4


def test_a_cut_frame_is_delivered_without_a_next_one(server: FrameServer, reader: WorldStateReader) -> None:
    server.send(framed(world_state(1.0, 90_000), CUT_BYTES))
    (frame,) = receive(reader, 1)
    assert frame.dota_time == 1.0 and frame.lost_bytes > 20_000 and reader.decoder.cut_frames == 1
    server.send(framed(world_state(2.0)))
    assert [f.dota_time for f in receive(reader, 1)] == [2.0]


def test_frames_of_the_other_team_are_dropped(server: FrameServer, reader: WorldStateReader) -> None:
    server.send(framed(world_state(1.0, team=3)) + framed(world_state(2.0)))
    assert [frame.dota_time for frame in receive(reader, 1)] == [2.0]


def test_a_port_that_opens_later_is_found() -> None:
    (port,) = free_ports(1)
    with socket.create_server(("127.0.0.1", port)):
        assert is_port_used(port) and wait_until_free((port,), 0.0) == (port,)
    assert not is_port_used(port) and wait_until_free((port,), 5.0) == ()
    reader = WorldStateReader(port, 2)
    try:
        assert reader.receive(0.3) == []
        with socket.create_server(("127.0.0.1", port)) as listener:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(framed(world_state(1.0)))
                assert len(receive(reader, 1)) == 1
                eventually(lambda: reader.connections == 1)
    finally:
        reader.close()
