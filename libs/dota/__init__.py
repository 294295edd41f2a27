"""A deterministic, native simulation of Dota 2's rules with a numpy API.

``dota.Game`` plays one game, ``dota.VecGame`` many. ``dota.spaces`` and ``dota.config`` describe what is seen and
played and need no compiled core, which is therefore imported on first use only.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dota.processor import core_folder

if TYPE_CHECKING:
    from dota.game import Game
    from dota.replay import Replay
    from dota.vec_game import Controller, VecGame, Winner

__all__ = ["Controller", "Game", "Replay", "VecGame", "Winner"]

_HOMES = {"Game": "dota.game", "Replay": "dota.replay", "VecGame": "dota.vec_game", "Controller": "dota.vec_game",
          "Winner": "dota.vec_game"}

if _newer := core_folder(Path(__file__).parent):
    __path__.insert(0, str(_newer))  # `dota._core` is found there first


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dota' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
