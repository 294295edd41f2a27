"""Build patch that lets PufferLib 3.0.0 install without downloads; its build loads this file by PYTHONPATH.

Without its games (NO_OCEAN=1, which download libraries) its setup.py uses an undefined name, and it calls nvcc when
present, which a CPU build of torch cannot use.
"""

import builtins
import shutil

builtins.c_extension_paths = []  # type: ignore[attr-defined]
_which = shutil.which
shutil.which = lambda cmd, *args, **more: None if cmd == "nvcc" else _which(cmd, *args, **more)  # type: ignore[assignment]
