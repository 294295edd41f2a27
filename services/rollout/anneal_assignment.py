"""The change that is on its way into games: which of a rollout's games have it."""

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
    """What one game is played under: its arm and the attempt that drew it ('' and '' while nothing is annealed), and
    the configuration where it is not the run's own."""

    name: str = ""
    trial: str = ""
    config: GameConfig | None = None


NO_ANNEAL = GameVariant()


class AnnealAssignment:
    """The run's anneal as it was last read, over the run's own game."""

    def __init__(self, game: GameConfig) -> None:
        self._game = game
        self._layout = Layout(game).hash
        self._anneal: Anneal | None = None
        self._changed = game

    def update(self, document: Any) -> None:
        """Takes the anneal's document over, None for none. Raises ValueError for one that this rollout cannot play:
        the last one holds then."""
        anneal = None if document is None else Anneal.model_validate(document)
        if anneal is None or anneal.state not in ACTIVE:
            self._anneal = None
            return
        if self._anneal is None or anneal.overrides != self._anneal.overrides:
            try:
                changed = GameConfig.model_validate(merge_overrides(self._game.model_dump(mode="json"), anneal.overrides))
            except ValidationError as error:
                raise ValueError(f"anneal {anneal.id!r} does not give a valid game configuration: {error}") from None
            if Layout(changed).hash != self._layout:
                raise ValueError(f"anneal {anneal.id!r} changes the layout of observations and actions: that takes "
                                 "surgery")
            self._changed = changed
        self._anneal = anneal

    def assign(self, game: str, newest_version: int) -> GameVariant:
        """What the game of that id is played under while ``newest_version`` is the newest."""
        anneal = self._anneal
        if anneal is None:
            return NO_ANNEAL
        arm = assign_variant(anneal.trial, game, anneal.share(newest_version))
        return GameVariant(arm, anneal.trial, self._changed if arm is Variant.NEW else None)
