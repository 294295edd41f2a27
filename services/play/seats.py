"""Who plays which hero of a game: people while they are there, the agent otherwise."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field

TEAM_HEROES = 5


class NoSeat(ValueError):
    """A hero cannot be had; the message is a word for the person's screen."""


@dataclass
class Seat:
    """A hero of the game. ``who``: whose it is, '' the agent's; ``there``: whether he is connected; ``handed``:
    whether he has given it to the agent for a while; ``left_at``: since when he is away."""

    hero: int
    name: str
    who: str = ""
    there: bool = False
    handed: bool = False
    left_at: float = 0.0

    @property
    def held(self) -> bool:
        """Whether a person plays it now."""
        return bool(self.who) and self.there and not self.handed


@dataclass
class Seats:
    """The heroes of a game, by number (team * 5 + place). ``kept_seconds``: how long one stays his who is away."""

    names: dict[int, str]
    kept_seconds: float
    seats: dict[int, Seat] = field(init=False)

    def __post_init__(self) -> None:
        self.seats = {hero: Seat(hero, name) for hero, name in self.names.items()}

    def reserve(self, who: str, heroes: Iterable[int], now: float) -> None:
        """Makes heroes somebody's who is not there yet. Raises NoSeat."""
        for hero in heroes:
            self._free(hero, who, now)
            seat = self.seats[hero]
            seat.who, seat.there, seat.handed, seat.left_at = who, False, False, now

    def enter(self, who: str, wanted: Iterable[int], now: float) -> list[int]:
        """Somebody is there: with the heroes that are his, and those that he wants as well. Raises NoSeat for one that
        is another's or on the other side of his, and when he would have none."""
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
        """Somebody's connection is gone."""
        for hero in self.of(who):
            seat = self.seats[hero]
            seat.there, seat.left_at = False, now

    def hand(self, who: str, hero: int | None, held: bool) -> None:
        """Gives one of somebody's heroes (None: all) to the agent, or takes it back. Raises NoSeat."""
        heroes = self.of(who) if hero is None else [hero]
        if not set(heroes) <= set(self.of(who)):
            raise NoSeat("not_yours")
        for h in heroes:
            self.seats[h].handed = not held

    def of(self, who: str) -> list[int]:
        """Somebody's heroes."""
        return [hero for hero, seat in self.seats.items() if seat.who == who and who]

    def held(self) -> set[int]:
        """Heroes that people play now."""
        return {hero for hero, seat in self.seats.items() if seat.held}

    def people(self) -> set[str]:
        """Everybody who has a hero."""
        return {seat.who for seat in self.seats.values() if seat.who}

    def sides(self, fillers: Sequence[str], came: Container[str]) -> list[str]:
        """Who plays each side, for people to read: those of its people who ``came``, and its filler (by side) where it
        had heroes to play all the time."""
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
