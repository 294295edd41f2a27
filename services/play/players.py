"""Who can play a side where no person does: versions that stay in the archive, and the game's bots."""

from dataclasses import dataclass

from dota.vec_game import BOTS
from five.agent.standings import player_name
from rapid.store.parameters import ParameterStore

AGENT, NEWEST = "agent", "newest"
MOST_OFFERED = 20  # versions


@dataclass(frozen=True)
class Filler:
    """Who plays a side's heroes that no person holds: a bot of the core (``controller`` > 0), or a version."""

    name: str  # as the ladder calls him
    controller: int = 0
    version: int = -1


def kept_versions(parameters: ParameterStore, every: int, most: int = MOST_OFFERED) -> list[int]:
    """The newest versions that stay in the archive, so that a game's can be loaded until it ends, and are none of a
    warm-up; newest first. Raises redis.RedisError."""
    if every == 0:
        return []
    found: list[int] = []
    for record in parameters.newest_records(every):
        if record.blob and not record.warming:
            found.append(record.version)
            if len(found) == most:
                break
    return found


def filler(name: str, newest: int | None, known: ParameterStore) -> Filler:
    """Who is meant by a name: "agent" and "newest" the newest version, a number, or a bot. Raises ValueError saying
    what there is."""
    if name in BOTS:
        return Filler(name, int(BOTS[name]))
    if name in (AGENT, NEWEST):
        if newest is None:
            raise ValueError(f"{name!r}: this run has no version in its archive yet; there are {', '.join(BOTS)}")
        return Filler(player_name(newest), version=newest)
    if name.isdigit() and len(name) <= 15:
        version = int(name)
        record = known.record(version)
        if record is None or not record.blob:
            raise ValueError(f"version {version} is not in the archive; GET /v1/play lists some that are")
        return Filler(player_name(version), version=version)
    raise ValueError(f"{name!r} is none who plays: {AGENT}, {NEWEST}, a version's number, or {', '.join(BOTS)}")
