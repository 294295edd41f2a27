"""Check and repair of a Redis append-only file by the server's own check tool.

The server's binary is that tool too: under the name ``redis-check-aof`` it checks instead of serving.
"""

import os
import re
import secrets
import shutil
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

MANIFEST = Path("appendonlydir") / "appendonly.aof.manifest"
# Messages of a server that cannot load its file. It cuts off an incomplete end, as after a power failure, by itself.
_DAMAGE = re.compile(r"reading the append only file|RDB preamble of the append only file|AOF manifest file|"
                     r"AOF file .* doesn't exist|RDB CRC error|Wrong signature trying to load DB|"
                     r"Internal error in RDB|duplicated key")
_CRASH, _LOADED = "REDIS BUG REPORT", "Ready to accept connections"


class Unrepairable(RuntimeError):
    """The file cannot be repaired."""


class Repair(NamedTuple):
    """Result: the folder with a copy of the damaged files, and sizes in bytes before and after."""

    copy: Path
    before: int
    after: int


def is_damage(log: str) -> bool:
    """Return whether the log of one start reports a damaged append-only file, so that no restart helps.

    Some damage crashes the server while it loads the file.
    """
    return _DAMAGE.search(log) is not None or (_CRASH in log and _LOADED not in log)


def check(binary: str, folder: Path) -> str:
    """Return what is wrong with the append-only file in a server's data folder; '' for an undamaged or a missing one.
    """
    if not (folder / MANIFEST).exists():
        return ""
    done = _tool(binary, folder)
    return "" if done.returncode == 0 else _last_line(done.stdout)


def repair(binary: str, folder: Path) -> Repair:
    """Cut the file off at the damage, and copy the damaged files into a folder beside it first.

    What Redis wrote after the damage is lost. Raises Unrepairable when the damage is not in the file that was written
    last, and OSError when the files cannot be copied.
    """
    copy = set_aside(folder, keep=True)
    before = _bytes(folder / MANIFEST.parent)
    done = _tool(binary, folder, "--fix")
    problem = check(binary, folder)
    if done.returncode != 0 or problem:
        raise Unrepairable(f"{folder / MANIFEST.parent}: {problem or _last_line(done.stdout)}")
    return Repair(copy, before, _bytes(folder / MANIFEST.parent))


def set_aside(folder: Path, keep: bool = False) -> Path:
    """Move the append-only files of a data folder to a folder beside them, or copy them with ``keep``. Return that
    folder.

    Raises OSError, such as for a full disk, and leaves no partial copy then.
    """
    source = folder / MANIFEST.parent
    target = folder / (f"{source.name}.damaged-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-"
                       f"{secrets.token_hex(2)}")
    if keep:
        partial = target.with_name(f".{target.name}")
        try:
            shutil.copytree(source, partial)
            partial.replace(target)
        except shutil.Error as error:
            _, _, reason = error.args[0][0]  # of the first file
            raise OSError(f"{source} cannot be copied to {target}: {reason}") from None
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    else:
        source.replace(target)
    return target


def _tool(binary: str, folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    # The tool asks whether to cut the file off.
    return subprocess.run(["redis-check-aof", *options, str(folder / MANIFEST)], executable=binary, input="y\n",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)


def _bytes(folder: Path) -> int:
    return sum(os.stat(path).st_size for path in folder.iterdir())


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "the check tool failed")
