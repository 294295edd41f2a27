"""Ratings of people. Their games change neither the ratings of versions nor the league.

TrueSkill (Herbrich et al. 2006) is updated after every game, because people learn. A game changes the ratings of its
people only. The version or bot that plays a side's other heroes enters with its rating on the run's ladder (random play
is 0), or with the prior, weighted by its share of heroes.
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
MEAN = 25.0  # rating of a person without games; TrueSkill's default
TAU = 1 / 100  # growth of a person's deviation between games, as a share of the initial one; TrueSkill's default
DRAW = 3


@dataclass(frozen=True)
class FinishedGame:
    """Ended game with people. ``winner``: 0 none (abandoned), 1 Radiant, 2 Dire, 3 a draw. ``people`` by side: number
    of heroes that each person controlled at the end. ``away``: people who left. ``fillers`` by side: name on the ladder
    of the player of the other heroes. ``heroes``: number of heroes of a side."""

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


class RatedPeople:
    """Table of a run's people. Blocking."""

    def __init__(self, state: RunState, config: RatingConfig) -> None:
        self._table = state.table(TABLE)
        self._standings = state.table("ratings")
        self._config = config

    def rate(self, played: FinishedGame) -> dict[str, Person]:
        """Rate an ended game; a repeated report of it changes nothing. Return the people whose rating changed.

        The game counts as abandoned for people who left, and for everybody if it has no winner. This does not change a
        rating. Raises redis.RedisError.
        """
        skills = self._skills(played.fillers)
        rated_people: dict[str, Person] = {}

        def change(rows: dict[str, Any]) -> dict[str, Any]:
            rated_people.clear()
            known = {name: Person(**row) for name, row in rows.items()}
            stayed = {name for side in played.people for name in side}
            changed = {name: known.get(name, Person(name, sigma=self._config.sigma))
                       for name in [*stayed, *played.away]}
            rated = self._new_skills(played, changed, skills) if played.winner else {}
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
                    rated_people[name] = person
                person.last_game, person.last_at = played.game, time.time()
            return {name: asdict(person) for name, person in changed.items()}

        applied = self._table.update(change, once=played.game)
        if not applied:
            return {}
        page.RATED.inc(len(rated_people))
        return rated_people

    def _skills(self, fillers: Sequence[str]) -> dict[str, Skill]:
        """Return the ladder's ratings of the fillers."""
        found = {}
        for name in fillers:
            row = self._standings.get(f"rated:{name}")
            if isinstance(row, dict):
                found[name] = Skill(float(row["mu"]), max(float(row["sigma"]), 1e-3))
        return found

    def _new_skills(self, played: FinishedGame, people: Mapping[str, Person], skills: Mapping[str, Skill]
                    ) -> dict[str, Skill]:
        """Return the TrueSkill ratings after the game of the people who stayed."""
        sigma = self._config.sigma
        env = trueskill.TrueSkill(mu=MEAN, sigma=sigma, beta=self._config.beta, tau=sigma * TAU,
                                  draw_probability=self._config.draw_probability)
        groups: list[dict[str, Any]] = []
        weights: list[dict[str, float]] = []
        for side in range(2):
            held = played.people[side]
            group = {name: env.create_rating(people[name].mu, people[name].sigma) for name in held}
            weight = {name: heroes / played.heroes for name, heroes in held.items()}
            others = played.heroes - sum(held.values())
            if others > 0:
                skill = skills.get(played.fillers[side], Skill(MEAN, sigma))
                group[""] = env.create_rating(skill.mu, skill.sigma)
                weight[""] = others / played.heroes
            groups.append(group)
            weights.append(weight)
        ranks = [0, 0] if played.winner == DRAW else [int(played.winner != 1), int(played.winner != 2)]
        after = env.rate(groups, ranks, weights={(i, name): w for i, side in enumerate(weights)
                                                 for name, w in side.items()})
        return {name: Skill(float(rating.mu), float(rating.sigma)) for side in after for name, rating in side.items()
                if name}
