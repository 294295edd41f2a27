"""Ratings of people, kept apart from those of versions: no person's game moves a version's rating or the league.

TrueSkill (Herbrich et al. 2006) as it is filtered game by game, since people learn: each game moves the ratings of the
people in it, and nobody else's. Who fills a side's other heroes has the rating that the run's ladder gives that version
or bot (random play is 0), or what is believed of anybody before the first game; it counts by its heroes.
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
class Played:
    """A game of people that has ended. ``winner``: 0 nobody (it was abandoned), 1 Radiant, 2 Dire, 3 a draw;
    ``people`` by side: how many of its heroes each held to the end; ``away`` those who had one and left;
    ``fillers`` by side: the ladder's name of who plays the rest; ``heroes``: of a side."""

    game: str
    winner: int
    people: Sequence[Mapping[str, int]]
    away: Sequence[str]
    fillers: Sequence[str]
    heroes: int


@dataclass
class Person:
    """A rated person: TrueSkill points, and games by how they ended for him."""

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
    """The table of people of one run. Blocking."""

    def __init__(self, state: RunState, config: RatingConfig) -> None:
        self._table = state.table(TABLE)
        self._standings = state.table("ratings")
        self._config = config

    def all(self) -> list[Person]:
        """Everybody who has played, the strongest first."""
        return people_of(self._table.all())

    def ended(self, played: Played) -> dict[str, Person]:
        """Takes a game in, once however often it is told of. Returns those whose rating it has moved.

        Who left is counted as having abandoned it, and so is everybody when nobody won: neither moves a rating.
        Raises redis.RedisError.
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
        """What the ladder knows of who fills the sides."""
        found = {}
        for name in fillers:
            row = self._standings.get(f"rated:{name}")
            if isinstance(row, dict):
                found[name] = Skill(float(row["mu"]), max(float(row["sigma"]), 1e-3))
        return found

    def _rated(self, played: Played, people: Mapping[str, Person], skills: Mapping[str, Skill]) -> dict[str, Skill]:
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
    """The people in the rows of the table, the strongest first."""
    return sorted((Person(**row) for row in rows.values()), key=lambda p: (-p.mu, p.name))
