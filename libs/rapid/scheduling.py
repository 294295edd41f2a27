"""Time slices of a process on a core that it shares with other services.

Services on one machine wake each other with every message. Without this each of them computes for two or three
milliseconds before another one takes its core and its cache.
"""

import ctypes
import os
import platform
import struct

TIME_SLICE_SECONDS = 0.02  # the kernel allows up to 0.1
_SET_ATTRIBUTES = {"x86_64": 314, "aarch64": 274}  # sched_setattr, which neither Python nor older C libraries have
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")  # struct sched_attr: size, policy, flags, nice, priority, runtime, two more


def set_time_slice(seconds: float = TIME_SLICE_SECONDS) -> bool:
    """Request time slices of ``seconds`` for this thread and the threads that it starts later. They also preempt no
    other process when they wake (SCHED_BATCH).

    Return whether the system accepted the request. Only Linux does; before 6.12 it ignores the length.
    """
    call = _SET_ATTRIBUTES.get(platform.machine())
    if platform.system() != "Linux" or call is None:
        return False
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_BATCH, 0, nice, 0, round(seconds * 1e9), 0, 0)
    found: int = ctypes.CDLL(None).syscall(ctypes.c_long(call), 0, ctypes.c_char_p(attributes), 0)
    return found == 0
