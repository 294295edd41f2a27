"""Check of an installation with a short game: world states, orders and lockstep."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from five.real_client.action_files import Action
from five.real_client.console_log import DIRE, RADIANT
from five.real_client.frames import Frame
from five.real_client.session import Session

HEROES = {team: tuple(f"npc_dota_hero_{name}" for name in names) for team, names in (
    (RADIANT, ("nevermore", "sniper", "lion", "crystal_maiden", "viper")),
    (DIRE, ("tidehunter", "sven", "lich", "axe", "witch_doctor")))}
_HOLD_SECONDS = 1.0
_ORDER_SECONDS = 1.0  # game seconds between two orders of a hero
_SETTLE_SECONDS = 0.5  # for the last reports in the log


@dataclass
class Check:
    """Counts of a check. ``problems`` lists what does not work; none: a policy can play."""

    frames: int = 0
    largest: int = 0  # bytes of a payload
    cut: int = 0
    last_time: float = 0.0
    game_seconds: float = 0.0
    stood_still: bool | None = None
    problems: list[str] = field(default_factory=list)

    def add(self, frames: Sequence[Frame]) -> None:
        """Count frames of one team."""
        for frame in frames:
            self.frames += 1
            self.largest = max(self.largest, len(frame.payload) + frame.lost_bytes)
            self.cut += frame.lost_bytes > 0
            self.last_time = frame.dota_time


def run_check(session: Session, seconds: float, say: Callable[[str], None]) -> Check:
    """Play a session of both teams for ``seconds`` of this machine's clock and say each second what arrives.

    Heroes are sent to the middle of the map once a second. Raises ClientFailed if no game starts.
    """
    check = Check()
    say("waiting for the first world state")
    orders = {team: _Orders(team) for team in session.options.teams}
    began = reported = time.monotonic()
    first: float | None = None
    held = False
    while session.winner is None and (now := time.monotonic()) - began < seconds:
        for team, frames in session.observe().items():
            check.add(frames)
            if first is None:
                began = reported = time.monotonic()
                first = frames[0].dota_time
                say(f"first world state: game time {first:.1f} s, {frames[0].units} units")
            elif not held and now - began > seconds / 2:
                held = True
                check.stood_still = _stands_still(session, team)
                say(f"the game {'stands' if check.stood_still else 'does not stand'} while a bot waits for its file")
            session.act(team, orders[team].next(frames[-1]))
        if time.monotonic() - reported >= 1:
            reported += 1
            say(_state(check, session))
    time.sleep(_SETTLE_SECONDS)
    check.game_seconds = 0.0 if first is None else check.last_time - first
    check.problems = _problems(check, session)
    return check


class _Orders:
    """Orders that send each hero of a team to the middle once a second."""

    def __init__(self, team: int) -> None:
        self._players = range((team - RADIANT) * 5, (team - RADIANT) * 5 + 5)
        self._due = -1e9

    def next(self, frame: Frame) -> list[Action]:
        if frame.dota_time < self._due:
            return []
        self._due = frame.dota_time + _ORDER_SECONDS
        return [{"actionType": "DOTA_UNIT_ORDER_MOVE_TO_POSITION", "player": player,
                 "moveToLocation": {"location": {"x": 0.0, "y": 0.0, "z": 0.0}}} for player in self._players]


def _stands_still(session: Session, team: int) -> bool:
    """Return whether no world state comes while the team's bots wait for their file."""
    reader = session.reader_of(team)
    time.sleep(_HOLD_SECONDS / 2)  # for frames that are being sent
    reader.receive(0)
    time.sleep(_HOLD_SECONDS)
    return not reader.receive(0)


def _state(check: Check, session: Session) -> str:
    ready = " and ".join(str(len(session.delivery_of(team).ready)) for team in session.options.teams)
    return (f"game time {check.last_time:.1f} s: {check.frames} world states, at most {check.largest / 1000:.1f} kB, "
            f"{check.cut} cut; bots ready: {ready}")


def _problems(check: Check, session: Session) -> list[str]:
    """Return the problems that were found, each with its probable cause."""
    found = []
    if check.stood_still is False:
        found.append("the game goes on while a bot waits: lockstep does not work; does the client still know "
                     "-nowatchdog?")
    if check.cut:
        found.append(f"{check.cut} world states were cut: units and tree events are missing from them")
    if session.stalls:
        found.append(f"{session.stalls} world states did not arrive within {session.options.stall_seconds:g} s")
    for team, name in ((RADIANT, "Radiant"), (DIRE, "Dire")):
        delivery = session.delivery_of(team)
        skipped = session.reader_of(team).decoder.skipped_bytes
        late = delivery.sent - delivery.executed - delivery.refused
        if skipped:
            found.append(f"{name}: {skipped} bytes between world states: do they begin otherwise than in 2017?")
        if len(delivery.ready) < 5:
            found.append(f"{name}: only the bots of players {sorted(delivery.ready)} report; are there Lua errors in "
                         "the console log?")
        if late > 5:
            found.append(f"{name}: {late} of {delivery.sent} orders have no report")
        if delivery.refused:
            found.append(f"{name}: {delivery.refused} orders refused: {', '.join(delivery.reasons)}")
    return found
