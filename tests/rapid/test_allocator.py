"""The allocator's settings keep freed memory in the process, as page faults show."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROBE = """
import resource, sys
if sys.argv[1] == "tuned":
    from rapid.allocator import tune_allocator
    assert tune_allocator()
def touch():
    block = bytearray(64 << 20)
    return len(block)
touch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    touch()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc only")
def test_allocator_keeps_large_blocks() -> None:
    faults = {}
    for how in ("plain", "tuned"):
        done = subprocess.run([sys.executable, "-c", PROBE, how], capture_output=True, text=True, check=True, cwd=ROOT,
                              env={**{k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")},
                                   "PYTHONPATH": "libs:."})
        faults[how] = int(done.stdout)
    # calloc must clear what it reuses, so the pages stay: no new faults for five times 64 MiB.
    assert faults["tuned"] < 100 < faults["plain"]
