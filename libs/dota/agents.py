"""What an agent of an environment sees and chooses from, whichever library's API carries it."""

import warnings
from collections.abc import Mapping, Sequence
from operator import index
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from dota.choices import Seen, choices_of
from dota.config import GameConfig, RewardConfig
from dota.flat import FlatObservation
from dota.rewards import SIGNALS, rewards
from dota.spaces import Layout, MaskClass
from dota.vec_game import Controller

Array = npt.NDArray[Any]
Observation = Literal["flat", "masked", "dict"]
OBSERVATIONS: tuple[str, ...] = get_args(Observation)
SELF = "self"
_DTYPES = {"shared": np.float32, "private": np.float32, "shared_ids": np.int32, "private_ids": np.int32,
           "available": np.int32, "target_mask": np.int8}


class AgentView:
    """Observations, masks and actions of an agent that commands ``heroes`` heroes.

    ``observation``: ``flat``, one row (``dota.flat``); ``masked``, that and the mask as a dictionary; ``dict``, the
    arrays of the layout and the mask. ``actions``: a form of ``dota.choices``. The mask's name is ``action_mask`` where
    an action is one number, ``action_masks`` where it is several: the masks of its parts, one after another. Raises
    ValueError for names that there are not.
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
        # What libraries take for the mask of one categorical choice is called so only where it is one.
        self.mask_name = "action_mask" if len(self.parts) == 1 else "action_masks"

    def array_shapes(self) -> dict[str, tuple[tuple[int, ...], npt.DTypeLike]]:
        """Shape and dtype of each array of an observation; ``flat`` is there under ``observation``."""
        mask: dict[str, tuple[tuple[int, ...], npt.DTypeLike]] = {self.mask_name: ((self.mask_width,), np.int8)}
        if self.observation != "dict":
            return {"observation": ((self.flat.size,), np.float32)} | (mask if self.observation == "masked" else {})
        lead = () if self.heroes == 1 else (self.heroes,)
        shapes: dict[str, tuple[tuple[int, ...], npt.DTypeLike]] = {}
        for name, (shape, _) in self.layout.array_specs().items():
            own = shape if name.startswith("shared") else (*lead, int(np.prod(shape[1:])))
            shapes[name] = (own, _DTYPES[name])
        return shapes | mask

    def seen(self, arrays: Mapping[str, Array]) -> Seen:
        """What can be done, of arrays with leading dimensions [..., (heroes)]."""
        return Seen(arrays["available"], arrays["target_mask"])

    def mask(self, arrays: Mapping[str, Array]) -> npt.NDArray[np.int8]:
        """int8 [..., mask_width], hero after hero, of arrays [..., heroes, .]."""
        mask = self.choices.mask(self.seen(arrays))
        return mask.reshape(*mask.shape[:-2], self.mask_width)

    def observe(self, arrays: Mapping[str, Array], mask: npt.NDArray[np.int8]) -> Any:
        """An observation [..., .] of arrays [..., heroes, .] (shared ones [..., .]), in new memory."""
        if self.observation == "flat":
            return self.flat(arrays)
        if self.observation == "masked":
            return {"observation": self.flat(arrays), self.mask_name: mask.copy()}
        lead = arrays["shared"].shape[:-1]
        out = {name: arrays[name].reshape(*lead, *shape).astype(dtype)
               for name, (shape, dtype) in self.array_shapes().items() if name != self.mask_name}
        return out | {self.mask_name: mask.copy()}

    def chosen(self, actions: Any, rows: tuple[int, ...], whose: str) -> npt.NDArray[np.int64]:
        """Actions as whole numbers [*rows, heroes, parts].

        Raises ValueError saying what is wrong with ``whose`` actions: not whole numbers, another shape, out of range.
        """
        given = np.asarray(actions)
        if given.dtype.kind not in "iu":
            raise ValueError(f"{whose} must be whole numbers, not {given.dtype}")
        width = len(self.parts)
        wanted = (*rows, width)
        if given.shape != wanted and not (width == 1 and given.shape == rows):
            raise ValueError(f"{whose} has shape {given.shape}, {wanted if width > 1 else rows} is needed")
        taken = given.astype(np.int64).reshape(*rows, width)
        if wrong := np.argwhere((taken < 0) | (taken >= self.parts)).tolist():
            place = wrong[0][-1]
            raise ValueError(f"{whose} has {taken[tuple(wrong[0])]} for choice {place} "
                             f"({self.choices.names[place % len(self.choices.parts)]}), which takes 0 to "
                             f"{self.parts[place] - 1}")
        return taken.reshape(*rows, self.heroes, len(self.choices.parts))


class Weighting:
    """How signals become rewards: a named list, weights by signal (the others 0, no scaling by time), or a
    ``RewardConfig``. ``team_spirit`` is the share that is the team's mean; without ``zero_sum`` the enemy's mean is not
    taken off. Raises ValueError for a signal or a list that there is not."""

    def __init__(self, weights: str | Mapping[str, float] | RewardConfig | None, team_spirit: float,
                 zero_sum: bool) -> None:
        if isinstance(weights, str):
            weights = RewardConfig.model_validate({"preset": weights})
        elif isinstance(weights, Mapping):
            if unknown := [name for name in weights if name not in SIGNALS]:
                raise ValueError(f"there is no signal {unknown[0]!r}; there are {', '.join(SIGNALS)}")
            weights = RewardConfig.model_validate(
                {"weights": {name: weights.get(name, 0.0) for name in SIGNALS}, "time_decay": 1.0})
        self.config = weights or RewardConfig()
        self.team_spirit = team_spirit
        self.zero_sum = zero_sum

    def __call__(self, signals: Array, game_time: Array) -> npt.NDArray[np.float32]:
        """float32 [..., 2, H] of signals [..., 2, H, 21] and seconds [...]."""
        return rewards(signals, game_time, self.team_spirit, self.config, zero_sum=self.zero_sum)[0]


def controller_of(opponent: str | int) -> Controller:
    """Who plays a side, by name or number. Raises ValueError for one that there is not; ``self`` is no controller."""
    known = {c.name.lower(): c for c in Controller if c is not Controller.POLICY}
    if isinstance(opponent, str) and opponent in known:
        return known[opponent]
    if not isinstance(opponent, str) and index(opponent) in [int(c) for c in known.values()]:
        return Controller(opponent)
    raise ValueError(f"there is no opponent {opponent!r}; there are {', '.join(known)}")


def whole_seed(seed: Any) -> int | None:
    """A seed as Python's number, numpy's taken too. Raises ValueError for what is not a whole number of 0 or more."""
    if seed is None:
        return None
    try:
        number = index(seed)
    except TypeError:
        raise ValueError(f"a seed is a whole number, not {seed!r}") from None
    if number < 0 or isinstance(seed, bool):
        raise ValueError(f"a seed is a whole number of 0 or more, not {seed!r}")
    return number


def reset_options(options: Mapping[str, Any] | None, known: Sequence[str], *, refuse: bool = True) -> dict[str, Any]:
    """Options of a reset. Raises ValueError naming one that it does not have, or warns of it where a library's own test
    gives some that no environment has."""
    given = dict(options or {})
    if unknown := [name for name in given if name not in known]:
        said = f"reset has no option {unknown[0]!r}; it has {', '.join(known)}"
        if refuse:
            raise ValueError(said)
        warnings.warn(said, stacklevel=3)
    return {name: value for name, value in given.items() if name in known}


def split_mask(mask: Array, parts: Sequence[int] | Array) -> tuple[Array, ...]:
    """A mask [..., sum(parts)] as one mask a choice, what ``MultiDiscrete.sample(mask)`` takes of a single one."""
    return tuple(np.split(mask, np.cumsum(np.asarray(parts))[:-1], axis=-1))


assert len(MaskClass) == 4  # dota.choices' factored form has a part for each
