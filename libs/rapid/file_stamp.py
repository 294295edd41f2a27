"""Detection of replaced or rewritten files."""

from pathlib import Path

FileStamp = tuple[int, int, int]


def file_stamp(path: Path) -> FileStamp:
    """Return a value that changes when the file is replaced or written. Raise OSError for a missing file."""
    found = path.stat()
    return found.st_mtime_ns, found.st_ino, found.st_size
