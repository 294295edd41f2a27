"""Replacement of the process image by a new one of the same command line (exec)."""

import json
import logging
import os
import socket
import sys
from collections.abc import Mapping
from typing import NoReturn

log = logging.getLogger(__name__)

SOCKETS_VARIABLE = "RAPID_INHERITED_SOCKETS"  # {name: file descriptor} as JSON


def reexec(sockets: Mapping[str, socket.socket] | None = None) -> NoReturn:
    """Replace this process by a new one of the same command line.

    Process id, parent, environment, standard streams and working directory stay. The new process gets the listening
    ``sockets`` by name (`inherited_socket`): connections that arrive meanwhile wait in the kernel instead of being
    refused. All other files and sockets are closed.
    """
    log.info("restarting process %d", os.getpid())
    for handler in logging.getLogger().handlers:
        handler.flush()
    sys.stdout.flush()
    sys.stderr.flush()
    passed = {name: one.fileno() for name, one in (sockets or {}).items()}
    # Python's files close on exec (PEP 446). Those of libraries may stay open, and a peer would wait on them forever.
    for name in os.listdir("/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"):
        if int(name) > 2:
            try:
                os.set_inheritable(int(name), int(name) in passed.values())
            except OSError:
                pass  # the file of the listing itself
    os.environ[SOCKETS_VARIABLE] = json.dumps(passed)
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def inherited_socket(name: str) -> socket.socket | None:
    """Return the listening socket of that name from before the exec; None without one. It is returned once."""
    passed = json.loads(os.environ.get(SOCKETS_VARIABLE) or "{}")
    descriptor = passed.pop(name, None)
    if descriptor is None:
        return None
    os.environ[SOCKETS_VARIABLE] = json.dumps(passed)
    os.set_inheritable(descriptor, False)
    return socket.socket(fileno=descriptor)
