"""Identity of a process that lets another process on the same machine check whether it still lives."""

import os
import secrets
from pathlib import Path
from typing import NamedTuple

# Distinguishes the images of a process: exec (os.execv) keeps the process id and the start.
_LIFE = secrets.token_hex(8)


class ProcessIdentity(NamedTuple):
    """``machine`` names one boot of one kernel and one PID namespace ('' when unknown). ``started`` is the process's
    start in kernel ticks since that boot. ``life`` is random per process image, because exec keeps the id and the
    start."""

    machine: str
    pid: int
    started: str
    life: str

    @classmethod
    def own(cls) -> "ProcessIdentity":
        """Return the identity of this process."""
        return cls(machine_id(), os.getpid(), started_at(os.getpid()), _LIFE)

    def is_dead(self) -> bool:
        """Return whether the process has certainly ended. False also when this process cannot know."""
        if not self.machine or self.machine != machine_id():
            return False
        if self.pid == os.getpid():
            return self.life != _LIFE
        return started_at(self.pid) != self.started


def machine_id() -> str:
    """Return an identifier of the kernel's boot and the PID namespace; '' where the system has none.

    A host name does not work: a new container may get the name of an old one.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def started_at(pid: int) -> str:
    """Return the process's start in ticks since the boot; '' for a process that has ended, also as a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in ("Z", "X") else fields[19]
