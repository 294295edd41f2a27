"""Evaluation games of a packed agent, which its card's scores are computed from.

``games.json`` is an `EvaluationGames`.
"""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field, ValidationError

from dota.vec_game import BOTS, TEAMS
from five.evaluation.match import MatchGame, PairedMatch
from five.packed_agents.card import NAME, SHA256, BotScore, Count, Document, Temperature, first_problem

MAX_GAMES = 20_000
Number = Annotated[float, Field(ge=-1e12, le=1e12)]


class GameRow(Document):
    """Game against a bot. ``score`` of the agent: 1 won, 0.5 drawn, 0 lost. ``side`` is the agent's: 0 Radiant, 1 Dire.
    ``own`` and ``other`` are means over the agent's and the bot's heroes, one for each of ``columns``."""

    against: Annotated[str, Field(pattern=NAME)]
    pair: Annotated[int, Field(ge=0, le=MAX_GAMES)]
    side: Annotated[int, Field(ge=0, le=1)]
    score: Annotated[float, Field(ge=0, le=1)]
    seconds: Annotated[float, Field(ge=0, le=1e6)]
    own: Annotated[list[Number], Field(max_length=64)]
    other: Annotated[list[Number], Field(max_length=64)]


class EvaluationGames(Document):
    """Games of the weights with SHA-256 ``weights_sha256``, sampled from the policy at ``temperature``, under one
    revision of the rules.

    Both games of a pair have one seed, derived from ``seed``, and swapped sides.
    """

    format: Annotated[int, Field(ge=1, le=1)] = 1
    weights_sha256: Annotated[str, Field(pattern=SHA256)]
    temperature: Temperature = 1.0
    rules: Annotated[int, Field(ge=1, le=10**6)]
    seed: Count
    columns: Annotated[list[str], Field(max_length=64)]
    games: Annotated[list[GameRow], Field(max_length=MAX_GAMES)]

    def scores(self) -> list[BotScore]:
        """Return the result against each bot, in the order of the bots' strength."""
        return [_score(bot, rows) for bot in BOTS if (rows := [row for row in self.games if row.against == bot])]


def parse_games(text: bytes) -> EvaluationGames:
    """Return the games in a file's bytes. Raises ValueError naming the wrong key."""
    try:
        return EvaluationGames.model_validate_json(text)
    except ValidationError as error:
        raise ValueError(first_problem(error)) from None


def _score(bot: str, rows: Sequence[GameRow]) -> BotScore:
    nothing = np.zeros((TEAMS, 0), np.float32)
    match = PairedMatch("agent", bot, [MatchGame(r.pair, r.side, r.score, r.seconds, nothing) for r in rows])
    won, drawn, lost = match.counts
    low, high = match.interval()
    return BotScore(against=bot, games=len(rows), won=won, drawn=drawn, lost=lost, score=round(match.score, 4),
                    low=round(low, 4), high=round(high, 4))
