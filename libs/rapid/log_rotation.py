"""Rotation of a log file that a running process appends to."""

import shutil
from itertools import pairwise
from pathlib import Path

from rapid.atomic_file import replacing

LOG_BYTES = 32 << 20  # size from which a log is rotated
OLD_LOGS = 2  # older parts that are kept: NAME.log.1, then NAME.log.2


def rotate(path: Path, limit: int = LOG_BYTES) -> bool:
    """Copy a log of at least ``limit`` bytes, or its last 2 * ``limit``, to NAME.log.1 and empty it. Return whether
    this was done.

    The process keeps its open file, which must be in append mode. Lines written between copy and truncation are lost.
    Raises OSError; the log then stays as it is.
    """
    try:
        size = path.stat().st_size
        if size < limit:
            return False
    except FileNotFoundError:
        return False
    parts = [path.with_name(f"{path.name}.{number}") for number in range(1, OLD_LOGS + 1)]
    with path.open("r+b") as log:
        log.seek(max(size - 2 * limit, 0))  # a log of an earlier release may be larger than the free disk
        with replacing(parts[0]) as copy:
            shutil.copyfileobj(log, copy, 1 << 20)
            for newer, older in reversed(list(pairwise(parts))):
                if newer.exists():
                    newer.replace(older)
        log.truncate(0)
    return True
