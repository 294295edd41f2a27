"""Players of a game: people, archived versions, and bots."""

from collections.abc import Sequence
from dataclasses import dataclass

from dota.config import GameConfig
from dota.vec_game import BOTS
from five.agent.standings import player_name
from five.services.play.orders import RateLimit
from five.services.play.outbox import Outbox
from five.services.play.seats import TEAM_HEROES
from rapid.store.parameters import ParameterStore

AGENT, NEWEST = "agent", "newest"
MAX_OFFERED = 20  # versions


@dataclass(frozen=True)
class Filler:
    """Player of a side's heroes that no person controls: a bot of the core (``controller`` > 0), or a version."""

    name: str  # the player's name on the ladder
    controller: int = 0
    version: int = -1


@dataclass(frozen=True)
class NewGame:
    """Parameters of a new game."""

    game: str
    who: str
    config: GameConfig
    seed: int
    lineup: Sequence[Sequence[str]] | None
    fillers: tuple[Filler, Filler]  # by side
    run: str


@dataclass
class ConnectedPlayer:
    """Connected person: outbox, rate limit, and heroes (none for a spectator)."""

    who: str
    outbox: Outbox
    heroes: list[int]
    order_limit: RateLimit
    message_limit: RateLimit  # of pings and handovers
    last: int = -1  # number of the last order

    @property
    def team(self) -> int:
        """The person's side."""
        return self.heroes[0] // TEAM_HEROES


def archived_versions(parameters: ParameterStore, every: int, most: int = MAX_OFFERED) -> list[int]:
    """Return the newest permanently archived versions outside a warm-up, newest first. They can be loaded at any time
    during a game. Raises redis.RedisError."""
    found: list[int] = []
    for record in parameters.newest_records(every):
        if record.blob and not record.warming:
            found.append(record.version)
            if len(found) == most:
                break
    return found


def filler(name: str, newest: int | None, known: ParameterStore) -> Filler:
    """Return the player of a name: a bot's name, a version's number, or "agent" or "newest" for the newest version.

    Raises ValueError that lists the allowed names.
    """
    if name in BOTS:
        return Filler(name, int(BOTS[name]))
    if name in (AGENT, NEWEST):
        if newest is None:
            raise ValueError(f"player {name!r}: the run has not archived a version yet; allowed are {', '.join(BOTS)}")
        return Filler(player_name(newest), version=newest)
    if name.isdigit() and len(name) <= 15:
        version = int(name)
        record = known.record(version)
        if record is None or not record.blob:
            raise ValueError(f"version {version}: it is not in the archive; GET /v1/play lists versions that are")
        return Filler(player_name(version), version=version)
    raise ValueError(f"player {name!r}: allowed are {AGENT}, {NEWEST}, a version's number, {', '.join(BOTS)}")
