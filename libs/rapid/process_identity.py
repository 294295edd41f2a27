"""Which process this is, in a way that another one on the same machine can check whether it still lives."""

import os
import secrets
from pathlib import Path
from typing import NamedTuple

# A process that replaces its own image (os.execv) keeps its id and its start: this tells its lives apart.
_LIFE = secrets.token_hex(8)


class ProcessIdentity(NamedTuple):
    """``machine`` is one boot of one kernel and one space of process ids in it ('': unknown); ``started`` the
    process's start in the kernel's ticks since that boot; ``life`` the image that it runs."""

    machine: str
    pid: int
    started: str
    life: str

    @classmethod
    def own(cls) -> "ProcessIdentity":
        """This process's."""
        return cls(machine_id(), os.getpid(), started_at(os.getpid()), _LIFE)

    def is_dead(self) -> bool:
        """Whether that process has certainly ended. False also where that cannot be known from here."""
        if not self.machine or self.machine != machine_id():
            return False
        if self.pid == os.getpid():
            return self.life != _LIFE
        return started_at(self.pid) != self.started


def machine_id() -> str:
    """The kernel's boot and the space of process ids, the same for all processes that see each other; '' where the
    system does not say. A host's name will not do: containers are given the names of those before them."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def started_at(pid: int) -> str:
    """When the process began, in ticks since the boot; '' for one that has ended (or waits to be reaped)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in ("Z", "X") else fields[19]
