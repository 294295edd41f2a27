"""Turns of a process: the kernel reports the policy and the length of a turn that were set."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROBE = """
import ctypes, os, platform, struct, threading
from rapid.scheduling import compute_in_long_turns
GET = {"x86_64": 315, "aarch64": 275}[platform.machine()]
def turn():
    attributes = ctypes.create_string_buffer(48)
    assert ctypes.CDLL(None).syscall(ctypes.c_long(GET), 0, attributes, 48, 0) == 0
    _, policy, _, nice, _, runtime, *_ = struct.unpack("=IIQiIQQQ", attributes.raw)
    print(policy == os.SCHED_BATCH, nice, runtime)
os.nice(3)
turn()
assert compute_in_long_turns(0.03)
later = threading.Thread(target=turn)
later.start()
later.join()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux only")
def test_threads_compute_in_long_turns() -> None:
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True, cwd=ROOT,
                          env={"PYTHONPATH": "libs:."})
    before, later = (line.split() for line in done.stdout.splitlines())
    assert before[:2] == ["False", "3"]
    assert later[:2] == ["True", "3"]
    # Kernels before 6.12 report 0: a turn has the length that they choose.
    assert later[2] in ("0", "30000000")
