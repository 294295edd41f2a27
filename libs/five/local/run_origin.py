"""Origin of a run: the command, source and machine that started it, and the packed agent that it began with."""

import json
import os
import shutil
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from rapid.atomic_file import replace_text
from rapid.malformed import MALFORMED


@dataclass(frozen=True)
class RunOrigin:
    """Origin of a run. ``agent`` is the packed agent whose weights its first version has, '' for none, and
    ``weights_sha256`` the digest of their file. ``gpus`` are the names of this machine's NVIDIA GPUs."""

    command: str
    commit: str
    cores: int
    gpus: tuple[str, ...] = ()
    agent: str = ""
    weights_sha256: str = ""

    @property
    def parent(self) -> str:
        """The packed agent with the start of its digest; '' for none."""
        return f"{self.agent} ({self.weights_sha256[:16]})" if self.agent else ""

    @property
    def hardware(self) -> str:
        """The machine as text."""
        return f"{self.cores} cores, {', '.join(self.gpus) or 'no GPU'}"

    def save(self, path: Path) -> None:
        """Write the origin as JSON, atomically and to disk."""
        replace_text(path, json.dumps(asdict(self), indent=1) + "\n", sync=True)

    @classmethod
    def load(cls, path: Path) -> "RunOrigin | None":
        """Return what `save` wrote; None without a file. Raises ValueError for an unreadable file."""
        try:
            row = json.loads(path.read_text(encoding="utf-8"))
            return cls(**{**row, "gpus": tuple(row["gpus"])})
        except FileNotFoundError:
            return None
        except MALFORMED as error:
            raise ValueError(f"{path} is not a run's origin: {error}") from None


def source_commit() -> str:
    """Return the source tree's commit, with "+" if files differ from it; "unknown" outside a checkout."""
    here = Path(__file__).resolve().parent
    try:
        # An installed Five may be in an ignored folder of another project's checkout.
        subprocess.run(["git", "ls-files", "--error-unmatch", Path(__file__).name], cwd=here, capture_output=True,
                       check=True)
        head = subprocess.run(["git", "rev-parse", "--short=9", "HEAD"], cwd=here, capture_output=True, text=True,
                              check=True).stdout.strip()
        dirty = subprocess.run(["git", "status", "--porcelain", "--untracked-files=no"], cwd=here,
                               capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+" if dirty else "")


def usable_cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gpu_names() -> tuple[str, ...]:
    """Return the names of this machine's NVIDIA GPUs."""
    if shutil.which("nvidia-smi") is None:
        return ()
    try:
        found = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True,
                               text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(line.strip() for line in found.stdout.splitlines() if line.strip())
