"""Atomic replacement of files."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

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
            os.link(partial, path)  # unlike a rename, a link never replaces a file
        else:
            partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def replace_text(path: Path, text: str, mode: int = 0o666, sync: bool = False) -> None:
    """Replace a file's text as `replacing` does."""
    with replacing(path, mode, sync) as file:
        file.write(text.encode())
