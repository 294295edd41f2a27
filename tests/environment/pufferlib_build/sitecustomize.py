"""Lets PufferLib 3.0.0 install without a network of its own: its build reads this file (PYTHONPATH).

Without its games (NO_OCEAN=1, which download libraries) its setup.py uses a name that it has not defined, and it calls
for nvcc where there is one, which a CPU build of torch cannot use.
"""

import builtins
import shutil

builtins.c_extension_paths = []  # type: ignore[attr-defined]
_which = shutil.which
shutil.which = lambda cmd, *args, **more: None if cmd == "nvcc" else _which(cmd, *args, **more)  # type: ignore[assignment]
