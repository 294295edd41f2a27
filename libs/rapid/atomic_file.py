"""Atomic replacement of files."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

# Errors of file systems without hard links, such as SMB, exFAT and mounted buckets.
_NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP)
PARTIAL = ".partial"  # suffix of a file that is being written; its name begins with "."


@contextmanager
def replacing(path: Path, mode: int = 0o666, sync: bool = False, exclusive: bool = False) -> Iterator[BinaryIO]:
    """Open a file that takes the place of ``path`` when the block ends without an error.

    Readers see the previous file or the new one. Of several writers the last one wins; with ``exclusive`` the first
    one, and the others raise FileExistsError. After an error, such as a full disk, the previous file remains. ``mode``
    holds the permissions before the umask; ``sync`` writes the contents to disk first. Raises OSError.
    """
    # Containers share process ids, and an existing file or link must not be followed.
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PARTIAL}")
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            yield file
            if sync:
                file.flush()
                os.fsync(file.fileno())
        if exclusive:
            _move_exclusively(partial, path, mode)
        else:
            partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _move_exclusively(partial: Path, path: Path, mode: int) -> None:
    try:
        os.link(partial, path)  # unlike a rename, a link never replaces a file
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # Readers may see an empty file for a moment, and a crash may leave one.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
        try:
            partial.replace(path)
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def replace_text(path: Path, text: str, mode: int = 0o666, sync: bool = False) -> None:
    """Replace a file's text as `replacing` does."""
    with replacing(path, mode, sync) as file:
        file.write(text.encode())
