"""Targets of what a real client sends: frames of world states, lines of its console log and its version file."""

import random
import struct

from five.protos.valve.bot_world_state_pb2 import CMsgBotWorldState
from five.real_client.console_log import parse_line
from five.real_client.frames import FrameDecoder, read_frame
from five.real_client.installation import parse_inf
from five.real_client.missing_heroes import missing_players
from tests.fuzz.targets import Target


def world_state(units: int) -> bytes:
    """Return a small world state of Radiant with two living heroes, one of them missing from its units."""
    message = CMsgBotWorldState(team_id=2, game_time=100.0, dota_time=10.0, game_state=5, time_of_day=0.5)
    for player in range(2):
        message.players.add(player_id=player, team_id=2, is_alive=True)
    for i in range(units):
        message.units.add(handle=i + 1, unit_type=CMsgBotWorldState.HERO, player_id=0, name="npc_dota_hero_lion")
    message.tree_events.add(tree_id=5, destroyed=True)
    return message.SerializeToString()


def stream(*payloads: bytes, sent: int = 1 << 20) -> bytes:
    """Return frames of payloads of which at most ``sent`` bytes each are sent."""
    return b"".join(struct.pack("<I", len(payload)) + payload[:sent] for payload in payloads)


def decode_stream(data: bytes) -> None:
    """Decode a socket's bytes in pieces. No bytes are refused; each frame begins and ends as a world state does."""
    pieces = random.Random(len(data))
    decoder = FrameDecoder()
    frames, at = [], 0
    while at < len(data):
        size = pieces.choice((1, 50, 5000, 70_000))
        frames += decoder.feed(data[at:at + size])
        at += size
    frames += [frame for frame in [decoder.flush()] if frame]
    for frame in frames:
        if frame.lost_bytes < 0 or read_frame(frame.payload).payload != frame.payload:
            raise AssertionError(f"frame of {len(frame.payload)} bytes is not whole")
        missing_players(frame)


REPORT = (b'11/27 15:00:00 FIVE {"kind":"done","team":2,"player":3,"time":-12.300,"sequence":17,"executed":2,'
          b'"refused":1,"reason":"no unit 5"}')
TARGETS = [
    Target("world-state-stream", "wire", decode_stream,
           lambda: [stream(world_state(3), world_state(0)), stream(world_state(2500), world_state(1), sent=65_536)],
           (), ("five/real_client/frames.py:read_frame", "five/real_client/frames.py:FrameDecoder._length",
                "five/real_client/missing_heroes.py:missing_players")),
    Target("client-log-line", "files", lambda data: parse_line(data.decode("utf-8", "replace")),
           lambda: [REPORT, b"good guys win = 1", b"Building: npc_dota_badguys_fort destroyed at 1.0",
                    b"FATAL ERROR: Watchdog timeout exceeded"],
           (), ("five/real_client/console_log.py:parse_line",)),
    Target("steam-inf", "files", parse_inf, lambda: [b"ClientVersion=6941\r\nVersionDate=Oct 01 2026\n"], ()),
]
