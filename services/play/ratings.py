"""People's ratings, separate from versions': a person's game changes neither a version's rating nor the league.

TrueSkill (Herbrich et al. 2006), updated game by game because people learn: each game changes the ratings of its people
only. The player of a side's other heroes has the rating of that version or bot on the run's ladder (random play is 0),
or the prior; it counts by its heroes.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import trueskill

from five.agent.config import RatingConfig
from five.agent.ratings import Skill
from five.services.play import metrics as page
from rapid.store.state import RunState

TABLE = "people"
MEAN = 25.0  # of somebody who has played no game; TrueSkill's own
TAU = 1 / 100  # how much a person's deviation grows between games, as a share of a new one's; TrueSkill's own
DRAW = 3


@dataclass(frozen=True)
class EndedGame:
    """Ended game with people. ``winner``: 0 none (abandoned), 1 Radiant, 2 Dire, 3 a draw; ``people`` by side: heroes
    that each controlled to the end; ``away``: those who left; ``fillers`` by side: the ladder's name of the other
    heroes' player; ``heroes``: of a side."""

    game: str
    winner: int
    people: Sequence[Mapping[str, int]]
    away: Sequence[str]
    fillers: Sequence[str]
    heroes: int


@dataclass
class Person:
    """Rated person: TrueSkill points, and games by result."""

    name: str
    mu: float = MEAN
    sigma: float = 25 / 3
    won: int = 0
    lost: int = 0
    drawn: int = 0
    abandoned: int = 0
    last_game: str = ""
    last_at: float = 0.0


class People:
    """Table of a run's people. Blocking."""

    def __init__(self, state: RunState, config: RatingConfig) -> None:
        self._table = state.table(TABLE)
        self._standings = state.table("ratings")
        self._config = config

    def all(self) -> list[Person]:
        """Return all people, the strongest first."""
        return people_of(self._table.all())

    def ended(self, played: EndedGame) -> dict[str, Person]:
        """Rate an ended game once, also if it is reported again. Return the people whose rating changed.

        People who left are counted as having abandoned it, and so is everybody when nobody won: neither changes a
        rating. Raises redis.RedisError.
        """
        skills = self._skills(played.fillers)
        moved: dict[str, Person] = {}

        def change(rows: dict[str, Any]) -> dict[str, Any]:
            moved.clear()
            known = {name: Person(**row) for name, row in rows.items()}
            mine = {name for side in played.people for name in side}
            changed = {name: known.get(name, Person(name, sigma=self._config.sigma))
                       for name in [*mine, *played.away]}
            rated = self._rated(played, changed, skills) if played.winner else {}
            for name, person in changed.items():
                side = next((i for i, people in enumerate(played.people) if name in people), None)
                if side is None or not played.winner:
                    person.abandoned += 1
                elif played.winner == DRAW:
                    person.drawn += 1
                elif played.winner - 1 == side:
                    person.won += 1
                else:
                    person.lost += 1
                if name in rated:
                    person.mu, person.sigma = rated[name].mu, rated[name].sigma
                    moved[name] = person
                person.last_game, person.last_at = played.game, time.time()
            return {name: asdict(person) for name, person in changed.items()}

        applied = self._table.update(change, once=played.game)
        if not applied:
            return {}
        page.RATED.inc(len(moved))
        return moved

    def _skills(self, fillers: Sequence[str]) -> dict[str, Skill]:
        """Return the ladder's ratings of the fillers."""
        found = {}
        for name in fillers:
            row = self._standings.get(f"rated:{name}")
            if isinstance(row, dict):
                found[name] = Skill(float(row["mu"]), max(float(row["sigma"]), 1e-3))
        return found

    def _rated(self, played: EndedGame, people: Mapping[str, Person], skills: Mapping[str, Skill]) -> dict[str, Skill]:
        sigma = self._config.sigma
        env = trueskill.TrueSkill(mu=MEAN, sigma=sigma, beta=self._config.beta, tau=sigma * TAU,
                                  draw_probability=self._config.draw_probability)
        groups: list[dict[str, Any]] = []
        weights: list[dict[str, float]] = []
        for side in range(2):
            here = played.people[side]
            group = {name: env.create_rating(people[name].mu, people[name].sigma) for name in here}
            weight = {name: held / played.heroes for name, held in here.items()}
            rest = played.heroes - sum(here.values())
            if rest > 0:
                skill = skills.get(played.fillers[side], Skill(MEAN, sigma))
                group[""] = env.create_rating(skill.mu, skill.sigma)
                weight[""] = rest / played.heroes
            groups.append(group)
            weights.append(weight)
        ranks = [0, 0] if played.winner == DRAW else [int(played.winner != 1), int(played.winner != 2)]
        after = env.rate(groups, ranks, weights={(i, name): w for i, side in enumerate(weights)
                                                for name, w in side.items()})
        return {name: Skill(float(rating.mu), float(rating.sigma)) for side in after for name, rating in side.items()
                if name}


def people_of(rows: Mapping[str, Any]) -> list[Person]:
    """Return the people in the table's rows, the strongest first."""
    return sorted((Person(**row) for row in rows.values()), key=lambda p: (-p.mu, p.name))
