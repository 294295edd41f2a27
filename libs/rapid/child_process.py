"""Ties a process to its parent's life: when the parent dies, however it dies, the child is killed.

Run as a program it is a launcher: ``python processes.py PARENT -- COMMAND...`` ties itself to the parent and becomes
the command. That is done in the child after exec, since code between fork and exec is unsafe in a threaded parent.
"""

import ctypes
import os
import signal
import sys

SUPERVISED_VARIABLE = "FIVE_SUPERVISED"  # set for all processes below a supervisor

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int | None = None) -> bool:
    """Has the kernel kill this process when the thread that started it ends. Returns False off Linux.

    ``parent`` is the process id that is expected to be the parent still: with another, it has died already, and this
    process ends at once.
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
    """The command that starts ``argv`` tied to this process."""
    # -I -S: neither the environment nor site-packages take part, so that it starts in milliseconds.
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), str(os.getpid()), "--", *argv]


def _main() -> None:
    parent, dashes, *command = sys.argv[1:]
    if dashes != "--" or not command:
        sys.exit("usage: processes.py PARENT -- COMMAND...")
    die_with_parent(int(parent))
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"cannot start {command[0]}: {error.strerror}")


if __name__ == "__main__":
    _main()
