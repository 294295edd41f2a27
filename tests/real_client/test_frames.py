"""The decoder finds every frame in any pieces, and the next one after a cut or damaged frame."""

import lzma
import struct
from random import Random

import pytest

from five.protos.valve.bot_world_state_pb2 import CMsgBotWorldState
from five.real_client.frames import CUT_BYTES, LARGEST, Frame, FrameDecoder, read_frame
from tests.dota.recorded_states import NAMES, recording


def world_state(dota_time: float = -89.5, size: int = 2000, team: int = 2, state: int = 4) -> bytes:
    """Return a world state with units, of at least ``size`` bytes."""
    message = CMsgBotWorldState(team_id=team, game_time=dota_time + 100, dota_time=dota_time, game_state=state)
    message.players.add(player_id=0, team_id=team, is_alive=True)
    for handle in range(size // 36 - 1):  # 38 bytes each
        message.units.add(handle=handle + 1, name="npc_dota_creep_badguys_melee", health=550)
    message.tree_events.add(tree_id=7, destroyed=True)
    return message.SerializeToString()


def framed(payload: bytes, sent: int | None = None) -> bytes:
    """Return a frame of which only ``sent`` bytes of the payload are sent."""
    return struct.pack("<I", len(payload)) + payload[:sent]


def decode(data: bytes, decoder: FrameDecoder, random: Random) -> list[Frame]:
    """Feed the data in pieces of random sizes."""
    frames, at = [], 0
    while at < len(data):
        size = random.choice((1, 3, 17, 1000, 70_000))
        frames += decoder.feed(data[at:at + size])
        at += size
    return frames


@pytest.mark.parametrize("seed", range(4))
def test_pieces_of_any_size_are_joined(seed: int) -> None:
    random = Random(seed)
    payloads = [world_state(i / 10, random.randrange(100, 90_000), random.choice((2, 3))) for i in range(12)]
    decoder = FrameDecoder()
    frames = decode(b"".join(map(framed, payloads)), decoder, random)
    assert [frame.payload for frame in frames] == payloads and not any(frame.lost_bytes for frame in frames)
    assert (decoder.cut_frames, decoder.skipped_bytes) == (0, 0)


def test_a_frame_tells_what_a_world_state_begins_with() -> None:
    frame = read_frame(world_state(12.5, 1000, 3, 5))
    assert (frame.team, frame.game_time, frame.dota_time, frame.game_state, frame.lost_bytes) == (3, 112.5, 12.5, 5, 0)
    assert frame.units == len(CMsgBotWorldState.FromString(frame.payload).units) > 5


@pytest.mark.parametrize(("state", "units", "playable"), [(2, 9, False), (4, 9, True), (5, 9, True), (5, 0, False),
                                                          (6, 9, False)])
def test_only_running_games_with_units_are_playable(state: int, units: int, playable: bool) -> None:
    assert read_frame(world_state(size=100 if units else 0, state=state)).is_playable is playable
    assert not read_frame(world_state(float("nan"), 100, state=state)).is_playable


@pytest.mark.parametrize("seed", range(4))
def test_the_next_frame_after_a_cut_one_is_found(seed: int) -> None:
    random = Random(seed)
    whole, long = world_state(1.0), world_state(2.0, 87_432)
    decoder = FrameDecoder()
    frames = decode(framed(whole) + framed(long, CUT_BYTES) + framed(whole) * 2, decoder, random)
    assert [frame.dota_time for frame in frames] == [1.0, 2.0, 1.0, 1.0]
    cut = frames[1]
    assert decoder.cut_frames == 1 and cut.lost_bytes == len(long) - len(cut.payload) >= len(long) - CUT_BYTES
    state = CMsgBotWorldState.FromString(cut.payload)
    assert len(state.units) == cut.units > 1000 and not state.tree_events


def test_silence_ends_a_cut_frame() -> None:
    decoder = FrameDecoder()
    assert decoder.feed(framed(world_state(2.0, 87_432), CUT_BYTES)) == []
    frame = decoder.flush()
    assert frame is not None and frame.dota_time == 2.0 and frame.lost_bytes > 0
    assert decoder.flush() is None
    assert [f.dota_time for f in decoder.feed(framed(world_state(3.0)))] == [3.0]


def test_a_slow_frame_is_no_cut_one() -> None:
    decoder = FrameDecoder()
    data = framed(world_state(2.0, 60_000))
    assert decoder.feed(data[:50_000]) == [] and decoder.flush() is None
    assert [frame.lost_bytes for frame in decoder.feed(data[50_000:])] == [0]


def test_the_rest_of_a_frame_after_silence_is_skipped() -> None:
    decoder = FrameDecoder()
    data = framed(world_state(2.0, 87_432))
    decoder.feed(data[:CUT_BYTES + 4])
    assert decoder.flush() is not None
    assert [frame.dota_time for frame in decoder.feed(data[CUT_BYTES + 4:] + framed(world_state(3.0)))] == [3.0]
    assert decoder.skipped_bytes == len(data) - CUT_BYTES - 4


@pytest.mark.parametrize("junk", [b"\0", b"\xff" * 40, b"\x08\x02\x15", bytes(1000), struct.pack("<I", LARGEST + 1)])
def test_bytes_between_frames_are_skipped(junk: bytes) -> None:
    decoder = FrameDecoder()
    frames = decoder.feed(framed(world_state(1.0)) + junk + framed(world_state(2.0)) + framed(world_state(3.0)))
    assert [frame.dota_time for frame in frames] == [1.0, 2.0, 3.0] and decoder.skipped_bytes == len(junk)


def test_a_new_connection_begins_with_a_frame() -> None:
    decoder = FrameDecoder()
    decoder.feed(framed(world_state(1.0))[:500])
    decoder.reset()
    assert [frame.dota_time for frame in decoder.feed(framed(world_state(2.0)))] == [2.0]


def test_a_payload_is_read_up_to_a_damaged_field() -> None:
    payload = world_state(1.0)
    for damage in (b"\x07", b"\x00\x01", b"\x5a\xff\xff\xff\xff\x07", b"\xff" * 12, b"\x5a"):
        frame = read_frame(payload + damage)
        assert frame.payload == payload and frame.lost_bytes == len(damage)
    with pytest.raises(ValueError, match="is not a world state"):
        read_frame(payload[1:])


@pytest.mark.parametrize("name", NAMES)
def test_every_frame_of_a_recorded_game_is_found(name: str) -> None:
    path = recording(name)
    if path is None:
        pytest.skip("FIVE_RECORDINGS names no folder with the recording; see tests/dota/recorded_states.py")
    decoder = FrameDecoder()
    frames = 0
    with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as file:
        while data := file.read(1 << 20):
            frames += len(decoder.feed(data))
    assert (frames, decoder.cut_frames, decoder.skipped_bytes) == (5086, 0, 0)
