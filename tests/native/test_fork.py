"""The native code works in a forked child of a process that has used its threads."""

import os
import time

import numpy as np

from five.native import _native
from five.native.collate import Encoding, StoredSet
from tests.native.test_collate import array, stored_array_of


def test_collator_in_a_forked_child() -> None:
    values = array(8, 4, 100, 0.3, 1)
    stored = StoredSet([stored_array_of(values, Encoding.CHANGES)], 8)
    collator = _native.Collator(4)

    def collate() -> bool:
        out = np.zeros((4, 8, 100), np.uint16)
        collator.collate([stored.native] * 8, list(range(8)), [out], 0)
        return bool(np.array_equal(out, values.transpose(1, 0, 2)))

    assert collate()
    child = os.fork()
    if child == 0:
        os._exit(0 if collate() else 3)
    end = time.monotonic() + 30
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < end:
        time.sleep(0.01)
    if ended == (0, 0):
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert ended != (0, 0) and os.waitstatus_to_exitcode(ended[1]) == 0
