"""Kill a child process when its parent dies, however it dies.

As a program this file is a launcher: ``python child_process.py PARENT -- COMMAND...`` ties itself to the parent and
execs the command. This happens in the child after exec, because code between fork and exec is unsafe in a threaded
parent.
"""

import ctypes
import os
import signal
import sys

SUPERVISED_VARIABLE = "FIVE_SUPERVISED"  # set for all descendants of a supervisor

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int | None = None) -> bool:
    """Have the kernel kill this process when the thread that started it ends. Return False on systems other than Linux.

    ``parent`` is the expected parent's process id. If the parent has another id, it has died already, and this process
    kills itself.
    """
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0) != 0:
        return False
    if parent is not None and os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    return True


def launcher(argv: list[str]) -> list[str]:
    """Return the command that starts ``argv`` tied to this process."""
    # -I -S skip the environment and site-packages, so it starts in milliseconds.
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), str(os.getpid()), "--", *argv]


def _main() -> None:
    parent, dashes, *command = sys.argv[1:]
    if dashes != "--" or not command:
        sys.exit("usage: child_process.py PARENT -- COMMAND...")
    die_with_parent(int(parent))
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"cannot start {command[0]}: {error.strerror}")


if __name__ == "__main__":
    _main()
