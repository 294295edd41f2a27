"""Assignment of a rollout's games to the variants of an anneal."""

import logging
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from dota.config import GameConfig
from dota.spaces import Layout
from five.agent.anneal.document import ACTIVE, Anneal, merge_overrides
from five.agent.anneal.variants import Variant, assign_variant

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class GameVariant:
    """Variant under which one game is played.

    ``name`` is "old" or "new" and ``trial`` the anneal's attempt; both are "" while nothing is annealed. ``config`` is
    the game configuration where it differs from the run's.
    """

    name: str = ""
    trial: str = ""
    config: GameConfig | None = None


NO_ANNEAL = GameVariant()


class AnnealAssignment:
    """Assigns variants by the run's anneal as last read. ``game`` is the run's own configuration."""

    def __init__(self, game: GameConfig) -> None:
        self._game = game
        self._layout = Layout(game).hash
        self._anneal: Anneal | None = None
        self._changed = game

    def update(self, document: Any) -> None:
        """Replace the anneal by a document; None ends it.

        Raises ValueError for one that this rollout cannot play, and keeps the previous one.
        """
        anneal = None if document is None else Anneal.model_validate(document)
        if anneal is None or anneal.state not in ACTIVE:
            self._anneal = None
            return
        if self._anneal is None or anneal.overrides != self._anneal.overrides:
            try:
                values = merge_overrides(self._game.model_dump(mode="json"), anneal.overrides)
                changed = GameConfig.model_validate(values)
            except ValidationError as error:
                raise ValueError(f"anneal {anneal.id!r}: invalid game configuration: {error}") from None
            if Layout(changed).hash != self._layout:
                raise ValueError(f"anneal {anneal.id!r} changes the layout of observations and actions, which needs "
                                 "surgery")
            self._changed = changed
        self._anneal = anneal

    def assign(self, game: str, newest_version: int) -> GameVariant:
        """Return the variant of a game while ``newest_version`` is the newest."""
        anneal = self._anneal
        if anneal is None:
            return NO_ANNEAL
        variant = assign_variant(anneal.trial, game, anneal.share(newest_version))
        return GameVariant(variant, anneal.trial, self._changed if variant is Variant.NEW else None)
