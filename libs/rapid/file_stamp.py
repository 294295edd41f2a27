"""By what a file is known to be another one than before, whoever replaced it."""

from pathlib import Path

FileStamp = tuple[int, int, int]


def file_stamp(path: Path) -> FileStamp:
    """Equal as long as the file is the same and nothing was written to it. Raises OSError where there is none, as while
    it is being replaced."""
    found = path.stat()
    return found.st_mtime_ns, found.st_ino, found.st_size
