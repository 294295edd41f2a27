"""A process that ends while objects of the native code are alive prints nothing about them."""

import subprocess
import sys

PROGRAM = """
import ctypes
from dota import _core
from five.native import _native

for kept in (_core.Layout, _native.Collator(1)):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))  # as a thread holds it that never ends
"""


def test_objects_alive_at_exit_are_not_reported() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
