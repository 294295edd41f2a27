"""Atomic replacement of a text file."""

import os
import threading
from pathlib import Path


def replace_text(path: Path, text: str, mode: int = 0o666) -> None:
    """Replace a file's text in one step; ``mode`` holds its permissions before the umask.

    Readers see the previous text or the new one. Of several writers the last one wins. After an error, such as a full
    disk, the previous text remains. Raises OSError.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.partial")
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as file:
            file.write(text)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
