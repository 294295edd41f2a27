"""The game in which the variants of an ablation are evaluated."""

from dota.config import GameConfig
from dota.spaces import Layout

# Keys of a game that say when its policies choose, what they see and are offered, and how far an offset reaches.
# Bots hardly depend on them.
POLICY_KEYS = ("frameskip", "commit_windups", "commit_moves", "save_consumables", "hide_unseen", "aggro_orders",
               "offset_cell", "observation")


def evaluated_game(baseline: GameConfig, own: GameConfig) -> GameConfig:
    """Return the game that a variant trained in ``own`` is evaluated in: the baseline's, unless `needs_own_game`."""
    return own if needs_own_game(baseline, own) else _with_policy_keys(baseline, own)


def needs_own_game(baseline: GameConfig, own: GameConfig) -> bool:
    """Whether a policy trained in ``own`` cannot play the baseline's game, for instance with fewer heroes."""
    return Layout(_with_policy_keys(baseline, own)).hash != Layout(own).hash


def _with_policy_keys(baseline: GameConfig, own: GameConfig) -> GameConfig:
    """Return the baseline's game with the `POLICY_KEYS` of ``own``, which belong to the policy."""
    return baseline.model_copy(update={name: getattr(own, name) for name in POLICY_KEYS})
