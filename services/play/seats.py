"""Assignment of a game's heroes to people while they are connected, and to the agent otherwise."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field

TEAM_HEROES = 5


class NoSeat(ValueError):
    """A requested hero is unavailable. The message is a code that the console translates."""


@dataclass
class Seat:
    """Hero of the game. ``who``: owner, '' for the agent; ``connected``: whether the owner is connected;
    ``handed_over``: whether the owner has lent it to the agent; ``left_at``: time at which the owner disconnected."""

    hero: int
    name: str
    who: str = ""
    connected: bool = False
    handed_over: bool = False
    left_at: float = 0.0

    @property
    def held(self) -> bool:
        """Return whether a person controls it now."""
        return bool(self.who) and self.connected and not self.handed_over


@dataclass
class Seats:
    """Heroes of a game, by number (team * 5 + seat). ``reservation_seconds``: how long a hero stays reserved for a
    person who is not connected."""

    names: dict[int, str]
    reservation_seconds: float
    seats: dict[int, Seat] = field(init=False)

    def __post_init__(self) -> None:
        self.seats = {hero: Seat(hero, name) for hero, name in self.names.items()}

    def reserve(self, who: str, heroes: Iterable[int], now: float) -> None:
        """Reserve heroes for a person who has not joined yet. Raises NoSeat."""
        for hero in heroes:
            self._require_free(hero, who, now)
            seat = self.seats[hero]
            seat.who, seat.connected, seat.handed_over, seat.left_at = who, False, False, now

    def enter(self, who: str, requested: Iterable[int], now: float) -> list[int]:
        """Give a person the heroes that are reserved for them or requested, and return these.

        Raises NoSeat for a hero of another person, for heroes of both sides, and if no hero is left.
        """
        reserved = self.of(who)
        heroes = [*reserved, *(hero for hero in requested if hero not in reserved)]
        if not heroes:
            raise NoSeat("no_seat")
        for hero in heroes:
            self._require_free(hero, who, now)
        if len({hero // TEAM_HEROES for hero in heroes}) > 1:
            raise NoSeat("both_sides")
        for hero in heroes:
            seat = self.seats[hero]
            if seat.who != who:
                seat.handed_over = False
            seat.who, seat.connected = who, True
        return sorted(heroes)

    def leave(self, who: str, now: float) -> None:
        """Mark a person as disconnected."""
        for hero in self.of(who):
            seat = self.seats[hero]
            seat.connected, seat.left_at = False, now

    def hand(self, who: str, hero: int | None, held: bool) -> None:
        """Give one of a person's heroes (None: all) to the agent, or take it back. Raises NoSeat."""
        heroes = self.of(who) if hero is None else [hero]
        if not set(heroes) <= set(self.of(who)):
            raise NoSeat("not_yours")
        for h in heroes:
            self.seats[h].handed_over = not held

    def of(self, who: str) -> list[int]:
        """Return a person's heroes."""
        return [hero for hero, seat in self.seats.items() if seat.who == who and who]

    def held(self) -> set[int]:
        """Return the heroes that people control now."""
        return {hero for hero, seat in self.seats.items() if seat.held}

    def controlled(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return by side how many heroes each person controls now."""
        sides: tuple[dict[str, int], dict[str, int]] = ({}, {})
        for hero in self.held():
            side, who = sides[hero // TEAM_HEROES], self.seats[hero].who
            side[who] = side.get(who, 0) + 1
        return sides

    def people(self) -> set[str]:
        """Return the people who own a hero."""
        return {seat.who for seat in self.seats.values() if seat.who}

    def sides(self, fillers: Sequence[str], participants: Container[str]) -> list[str]:
        """Return each side's players for display: its owners among the ``participants``, and its filler if one of its
        heroes had no such owner."""
        found = []
        for side, filler in enumerate(fillers):
            who = [seat.who for hero, seat in self.seats.items() if hero // TEAM_HEROES == side]
            people = sorted({name for name in who if name in participants})
            found.append(" + ".join([*people, *([] if all(name in participants for name in who) else [filler])]))
        return found

    def _require_free(self, hero: int, who: str, now: float) -> None:
        seat = self.seats.get(hero)
        if seat is None:
            raise NoSeat("no_hero")
        if seat.who and seat.who != who and (seat.connected or now - seat.left_at < self.reservation_seconds):
            raise NoSeat("taken")
