"""Replacement of the process image by a new one of the same command line (exec)."""

import logging
import os
import sys
from typing import NoReturn

log = logging.getLogger(__name__)


def reexec() -> NoReturn:
    """Replace this process by a new one of the same command line.

    Process id, parent, environment, standard streams and working directory stay. All other files and sockets are
    closed.
    """
    log.info("process %d restarts", os.getpid())
    for handler in logging.getLogger().handlers:
        handler.flush()
    sys.stdout.flush()
    sys.stderr.flush()
    # Python's own close by themselves (PEP 446); libraries' need not, and a peer would wait on one that nobody serves.
    for name in os.listdir("/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"):
        if int(name) > 2:
            try:
                os.set_inheritable(int(name), False)
            except OSError:
                pass  # the listing's own
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
