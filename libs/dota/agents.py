"""Observations, action formats and rewards that the Gymnasium and PettingZoo environments share."""

import warnings
from collections.abc import Mapping, Sequence
from operator import index
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from dota.choices import ActionInputs, choices_of
from dota.config import GameConfig, RewardConfig
from dota.flat import FlatObservation
from dota.rewards import SIGNALS, rewards
from dota.spaces import Layout
from dota.vec_game import Controller

Array = npt.NDArray[Any]
Observation = Literal["flat", "masked", "dict"]
OBSERVATIONS: tuple[str, ...] = get_args(Observation)
SELF = "self"
_DTYPES = {"shared": np.float32, "private": np.float32, "shared_ids": np.int32, "private_ids": np.int32,
           "available": np.int32, "target_mask": np.int8}


class AgentView:
    """Observations, masks and actions of an agent that commands ``heroes`` heroes.

    ``observation`` is ``flat`` (one row, ``dota.flat``), ``masked`` (a dictionary of that row and the mask) or ``dict``
    (the layout's arrays and the mask). ``actions`` is a format of ``dota.choices``. The mask is called ``action_mask``
    when an action is one number, and ``action_masks`` when it has several parts: then it holds the parts' masks one
    after another. Raises ValueError for an unknown name.
    """

    def __init__(self, config: GameConfig, layout: Layout, observation: str, actions: str, heroes: int) -> None:
        if observation not in OBSERVATIONS:
            raise ValueError(f"observation is one of {', '.join(map(repr, OBSERVATIONS))}, not {observation!r}")
        self.observation = observation
        self.heroes = heroes
        self.layout = layout
        self.choices = choices_of(actions, config, layout)
        self.flat = FlatObservation(layout, heroes)
        self.parts = np.tile(np.array(self.choices.parts, np.int64), heroes)
        self.mask_width = self.choices.width * heroes
        # `action_mask` is the libraries' name of one categorical choice's mask, so other masks have another name.
        self.mask_name = "action_mask" if len(self.parts) == 1 else "action_masks"

    def array_shapes(self) -> dict[str, tuple[tuple[int, ...], npt.DTypeLike]]:
        """Return shape and dtype of each array of an observation; ``flat`` has the key ``observation``."""
        mask: dict[str, tuple[tuple[int, ...], npt.DTypeLike]] = {self.mask_name: ((self.mask_width,), np.int8)}
        if self.observation != "dict":
            return {"observation": ((self.flat.size,), np.float32)} | (mask if self.observation == "masked" else {})
        lead = () if self.heroes == 1 else (self.heroes,)
        shapes: dict[str, tuple[tuple[int, ...], npt.DTypeLike]] = {}
        for name, (shape, _) in self.layout.array_specs().items():
            own = shape if name.startswith("shared") else (*lead, int(np.prod(shape[1:])))
            shapes[name] = (own, _DTYPES[name])
        return shapes | mask

    def action_inputs(self, arrays: Mapping[str, Array]) -> ActionInputs:
        """Select the arrays that describe valid actions, from arrays with leading dimensions [..., (heroes)]."""
        return ActionInputs(arrays["available"], arrays["target_mask"])

    def mask(self, arrays: Mapping[str, Array]) -> npt.NDArray[np.int8]:
        """Return the mask int8 [..., mask_width], hero after hero, for arrays [..., heroes, .]."""
        mask = self.choices.mask(self.action_inputs(arrays))
        return mask.reshape(*mask.shape[:-2], self.mask_width)

    def observe(self, arrays: Mapping[str, Array], mask: npt.NDArray[np.int8]) -> Any:
        """Return an observation [..., .] in new memory, from arrays [..., heroes, .] (shared arrays: [..., .])."""
        if self.observation == "flat":
            return self.flat(arrays)
        if self.observation == "masked":
            return {"observation": self.flat(arrays), self.mask_name: mask.copy()}
        lead = arrays["shared"].shape[:-1]
        out = {name: arrays[name].reshape(*lead, *shape).astype(dtype)
               for name, (shape, dtype) in self.array_shapes().items() if name != self.mask_name}
        return out | {self.mask_name: mask.copy()}

    def parse_actions(self, actions: Any, rows: tuple[int, ...], whose: str) -> npt.NDArray[np.int64]:
        """Return actions as integers [*rows, heroes, parts].

        Raises ValueError that names ``whose`` actions are wrong: not integers, a wrong shape, or out of range.
        """
        given = np.asarray(actions)
        if given.dtype.kind not in "iu":
            raise ValueError(f"{whose} must be integers, not {given.dtype}")
        width = len(self.parts)
        wanted = (*rows, width)
        if given.shape != wanted and not (width == 1 and given.shape == rows):
            raise ValueError(f"{whose} has shape {given.shape}; expected {wanted if width > 1 else rows}")
        numbers = given.astype(np.int64).reshape(*rows, width)
        if wrong := np.argwhere((numbers < 0) | (numbers >= self.parts)).tolist():
            part = wrong[0][-1]
            raise ValueError(f"{whose} has {numbers[tuple(wrong[0])]} for choice {part} "
                             f"({self.choices.names[part % len(self.choices.parts)]}), which takes 0 to "
                             f"{self.parts[part] - 1}")
        return numbers.reshape(*rows, self.heroes, len(self.choices.parts))


class Weighting:
    """Function from game signals to rewards.

    The weights are a named list, weights by signal (all others are 0, without scaling by time), or a ``RewardConfig``.
    ``team_spirit``, 0 to 1, is the team mean's share of a reward. Without ``zero_sum`` the enemy's mean is not
    subtracted. Raises ValueError for an unknown signal or list, and for a share out of range.
    """

    def __init__(self, weights: str | Mapping[str, float] | RewardConfig | None, team_spirit: float,
                 zero_sum: bool) -> None:
        if isinstance(weights, str):
            weights = RewardConfig.model_validate({"preset": weights})
        elif isinstance(weights, Mapping):
            if unknown := [name for name in weights if name not in SIGNALS]:
                raise ValueError(f"unknown signal {unknown[0]!r}; known: {', '.join(SIGNALS)}")
            weights = RewardConfig.model_validate(
                {"weights": {name: weights.get(name, 0.0) for name in SIGNALS}, "time_decay": 1.0})
        if not 0.0 <= team_spirit <= 1.0:
            raise ValueError(f"team_spirit must be between 0 and 1, not {team_spirit}")
        self.config = weights or RewardConfig()
        self.team_spirit = team_spirit
        self.zero_sum = zero_sum

    def __call__(self, signals: Array, game_time: Array) -> npt.NDArray[np.float32]:
        """Return rewards float32 [..., 2, H] for signals [..., 2, H, 21] and game times in seconds [...]."""
        return rewards(signals, game_time, self.team_spirit, self.config, zero_sum=self.zero_sum)[0]


def controller_of(opponent: str | int) -> Controller:
    """Return a side's controller by name or number. Raises ValueError for an unknown one; ``self`` is not a controller.
    """
    known = {c.name.lower(): c for c in Controller if c is not Controller.POLICY}
    for name, controller in known.items():
        if opponent in (name, controller):
            return controller
    raise ValueError(f"unknown opponent {opponent!r}; known: {', '.join(known)}")


def parse_seed(seed: Any) -> int | None:
    """Return a seed as a Python int; numpy integers are accepted. Raises ValueError for anything but an integer of at
    least 0."""
    if seed is None:
        return None
    try:
        number = index(seed)
    except TypeError:
        raise ValueError(f"seed must be an integer, not {seed!r}") from None
    if number < 0 or isinstance(seed, bool):
        raise ValueError(f"seed must be at least 0, not {seed!r}")
    return number


def reset_options(options: Mapping[str, Any] | None, known: Sequence[str], *, refuse: bool = True) -> dict[str, Any]:
    """Return the known options of a reset.

    Raises ValueError that names an unknown option. With ``refuse=False`` it warns and drops the option instead, because
    PettingZoo's own test passes an option that no environment has.
    """
    given = dict(options or {})
    if unknown := [name for name in given if name not in known]:
        problem = f"reset has no option {unknown[0]!r}; it has {', '.join(known)}"
        if refuse:
            raise ValueError(problem)
        warnings.warn(problem, stacklevel=3)
    return {name: value for name, value in given.items() if name in known}


def split_mask(mask: Array, parts: Sequence[int] | Array) -> tuple[Array, ...]:
    """Split a mask [..., sum(parts)] into one mask a part, the form that ``MultiDiscrete.sample(mask)`` takes."""
    return tuple(np.split(mask, np.cumsum(np.asarray(parts))[:-1], axis=-1))

