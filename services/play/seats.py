"""Assignment of a game's heroes to people while they are connected, and to the agent otherwise."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field

TEAM_HEROES = 5


class NoSeat(ValueError):
    """Unavailable hero; the message is a code for the person's screen."""


@dataclass
class Seat:
    """Hero of the game. ``who``: owner, '' for the agent; ``there``: whether the owner is connected; ``handed``:
    whether the owner gave it to the agent for a while; ``left_at``: since when the owner is away."""

    hero: int
    name: str
    who: str = ""
    there: bool = False
    handed: bool = False
    left_at: float = 0.0

    @property
    def held(self) -> bool:
        """Return whether a person controls it now."""
        return bool(self.who) and self.there and not self.handed


@dataclass
class Seats:
    """Heroes of a game, by number (team * 5 + seat). ``kept_seconds``: reservation time of an absent person."""

    names: dict[int, str]
    kept_seconds: float
    seats: dict[int, Seat] = field(init=False)

    def __post_init__(self) -> None:
        self.seats = {hero: Seat(hero, name) for hero, name in self.names.items()}

    def reserve(self, who: str, heroes: Iterable[int], now: float) -> None:
        """Reserve heroes for a person who has not joined yet. Raises NoSeat."""
        for hero in heroes:
            self._free(hero, who, now)
            seat = self.seats[hero]
            seat.who, seat.there, seat.handed, seat.left_at = who, False, False, now

    def enter(self, who: str, wanted: Iterable[int], now: float) -> list[int]:
        """Add a person with reserved and requested heroes. Raises NoSeat for a hero of another person or of the other
        side, and when the person would have none."""
        mine = self.of(who)
        asked = [*mine, *(hero for hero in wanted if hero not in mine)]
        if not asked:
            raise NoSeat("no_seat")
        for hero in asked:
            self._free(hero, who, now)
        if len({hero // TEAM_HEROES for hero in asked}) > 1:
            raise NoSeat("both_sides")
        for hero in asked:
            seat = self.seats[hero]
            if seat.who != who:
                seat.handed = False
            seat.who, seat.there = who, True
        return sorted(asked)

    def leave(self, who: str, now: float) -> None:
        """Mark a person as disconnected."""
        for hero in self.of(who):
            seat = self.seats[hero]
            seat.there, seat.left_at = False, now

    def hand(self, who: str, hero: int | None, held: bool) -> None:
        """Give one of a person's heroes (None: all) to the agent, or take it back. Raises NoSeat."""
        heroes = self.of(who) if hero is None else [hero]
        if not set(heroes) <= set(self.of(who)):
            raise NoSeat("not_yours")
        for h in heroes:
            self.seats[h].handed = not held

    def of(self, who: str) -> list[int]:
        """Return a person's heroes."""
        return [hero for hero, seat in self.seats.items() if seat.who == who and who]

    def held(self) -> set[int]:
        """Return the heroes that people control now."""
        return {hero for hero, seat in self.seats.items() if seat.held}

    def people(self) -> set[str]:
        """Return everybody who has a hero."""
        return {seat.who for seat in self.seats.values() if seat.who}

    def sides(self, fillers: Sequence[str], came: Container[str]) -> list[str]:
        """Return each side's players for display: its people who ``came``, and its filler if it controlled a hero
        throughout."""
        found = []
        for side, filler in enumerate(fillers):
            who = [seat.who for hero, seat in self.seats.items() if hero // TEAM_HEROES == side]
            people = sorted({name for name in who if name in came})
            found.append(" + ".join([*people, *([] if all(name in came for name in who) else [filler])]))
        return found

    def _free(self, hero: int, who: str, now: float) -> None:
        seat = self.seats.get(hero)
        if seat is None:
            raise NoSeat("no_hero")
        if seat.who and seat.who != who and (seat.there or now - seat.left_at < self.kept_seconds):
            raise NoSeat("taken")
