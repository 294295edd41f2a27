"""Rewards from a game's signals (Berner et al. 2019, table 6 and appendix G).

The core counts the signals of every hero and timestep; this module weights them, scales them by game time, shares them
within the team and makes them zero-sum.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from dota.config import RewardConfig, SignalName

# In the order of the core's enum Signal. Signals of team events (win, courier death, aegis, ancient, megas,
# buildings) are reported to every hero of the team, the others to the hero concerned.
#   win           1 on the winning team when the game ends
#   hero_death    deaths; courier_death: of the team's courier
#   xp, gold      points gained, gold gained (losses and purchases take nothing back)
#   gold_spent    gold spent on items without using the courier
#   health        change of h(share of full health), see `health_score`
#   mana          change of the share of full mana
#   killed_hero, last_hit, deny   counts
#   aegis, megas  1 when the team gains it
#   ancient_hp    share of the enemy ancient's health taken (negative when it heals)
#   tower1 ... barracks           enemy buildings destroyed, each worth 1: two thirds as its health is lost, one third
#                                 with its fall
#   lane_assign   seconds spent outside the assigned lanes
SIGNALS: tuple[SignalName, ...] = get_args(SignalName)

_PAPER: dict[SignalName, float] = {
    "win": 5.0, "hero_death": -1.0, "courier_death": -2.0, "xp": 0.002, "gold": 0.006, "gold_spent": 0.0006,
    "health": 2.0, "mana": 0.75, "killed_hero": -0.6, "last_hit": -0.16, "deny": 0.15, "aegis": 5.0,
    "ancient_hp": 5.0, "megas": 4.0, "tower1": 2.25, "tower2": 3.0, "tower3": 4.5, "tower4": 2.25, "shrine": 2.25,
    "barracks": 6.0, "lane_assign": -0.15}

# In the gist a standing building scores W (1 + 2 health), which is 3 W in all: two thirds with its health, one third
# with its fall. For the ancient, half of the last third is counted as the win, because both come at the same moment.
_GIST: dict[SignalName, float] = {
    **_PAPER, "last_hit": 0.16, "deny": 0.2, "courier_death": 0.0, "gold_spent": 0.0, "aegis": 0.0}

PRESETS: Mapping[str, Mapping[SignalName, float]] = MappingProxyType(
    {"paper": MappingProxyType(_PAPER), "gist": MappingProxyType(_GIST)})

# Signals that game time does not scale.
TIMELESS: Mapping[str, tuple[SignalName, ...]] = MappingProxyType({"paper": ("win",), "gist": ()})

Floats = npt.NDArray[np.floating[Any]]


def health_score(share: Floats) -> Floats:
    """Return h(x) = (x + 1 - (1 - x)^4) / 2 of the ``share`` of full health, 0 to 1: the last health counts most."""
    return (share + 1.0 - (1.0 - share) ** 4) / 2.0


def signal_weights(config: RewardConfig) -> npt.NDArray[np.float32]:
    """Return the weight of each signal, float32 [len(SIGNALS)]."""
    weights = {**PRESETS[config.preset], **config.weights}
    return np.array([weights[name] for name in SIGNALS], np.float32)


def time_weights(game_time: Floats, config: RewardConfig) -> npt.NDArray[np.float32]:
    """Return the factor on each signal at ``game_time`` seconds [...], float32 [..., len(SIGNALS)]; 1 before the horn.
    """
    decay = config.time_decay ** (np.maximum(game_time, 0.0) / config.time_decay_seconds)
    timeless = np.array([name in TIMELESS[config.preset] for name in SIGNALS])
    return np.where(timeless, 1.0, np.asarray(decay)[..., None]).astype(np.float32)


def rewards(
    signals: Floats,
    game_time: Floats,
    team_spirit: float | Floats,
    config: RewardConfig | None = None,
    *,
    zero_sum: bool = True,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return the rewards of both teams' heroes.

    A hero's reward is (1 - τ) of its own plus τ of its team's mean, minus the enemy team's mean, so that the rewards of
    a game sum to zero.

    Args:
        signals: [..., 2, H, len(SIGNALS)], teams in the order Radiant, Dire.
        game_time: [...], seconds since the horn.
        team_spirit: τ, 0 to 1, one number or [...].
        config: weights and time scaling; the default is the paper's.
        zero_sum: subtract the enemy team's mean, as in the paper.

    Returns:
        float32 [..., 2, H], and its terms by signal, [..., 2, H, len(SIGNALS)], which sum to it.

    Raises ValueError for inconsistent shapes or τ outside 0 to 1.
    """
    config = config or RewardConfig()
    if signals.ndim < 3 or signals.shape[-1] != len(SIGNALS) or signals.shape[-3] != 2:
        raise ValueError(f"signals must be [..., 2, heroes, {len(SIGNALS)}], not {signals.shape}")
    time, spirit = np.asarray(game_time, np.float64), np.asarray(team_spirit, np.float32)
    if time.shape != signals.shape[:-3]:
        raise ValueError(f"game_time has shape {time.shape}; expected {signals.shape[:-3]}, as signals")
    if not ((spirit >= 0) & (spirit <= 1)).all():
        raise ValueError(f"team_spirit must be between 0 and 1, not {team_spirit}")
    own = signals * (signal_weights(config) * time_weights(time, config))[..., None, None, :]
    mean = own.mean(axis=-2, keepdims=True)
    spirit = spirit.reshape(spirit.shape + (1,) * (3 if spirit.ndim else 0))
    shared = own + spirit * (mean - own)
    by_signal = (shared - mean[..., ::-1, :, :] if zero_sum else shared).astype(np.float32)
    return by_signal.sum(axis=-1), by_signal
