"""The agent's native code: the CPU actor, observation rows, pools and sample collation.

`make build` compiles the extension module ``five.native._native`` from ``core/``. It shares nothing with the game core.
"""

from five.native._native import INTERFACE as _INTERFACE
from five.native._native import Actor, RowColumns

__all__ = ["Actor", "RowColumns"]

if _INTERFACE != 3:
    from five.native import _native

    raise ImportError(f"{_native.__file__} has interface {_INTERFACE}, this code needs 3: run `make build`")
