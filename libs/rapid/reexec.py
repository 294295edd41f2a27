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
    log.info("restarting process %d", os.getpid())
    for handler in logging.getLogger().handlers:
        handler.flush()
    sys.stdout.flush()
    sys.stderr.flush()
    # Python's files close on exec (PEP 446). Those of libraries may stay open, and a peer would wait on them forever.
    for name in os.listdir("/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"):
        if int(name) > 2:
            try:
                os.set_inheritable(int(name), False)
            except OSError:
                pass  # the file of the listing itself
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
