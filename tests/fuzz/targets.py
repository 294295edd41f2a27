"""Fuzz targets: decoders of untrusted bytes, each with valid inputs and the errors by which it may refuse others.

A target fails when an input makes it raise another exception, crash, use seconds of processor time, or use memory far
beyond the input's size.
"""

import atexit
import os
import shutil
import struct
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from random import Random

MAX_BYTES = 1 << 16  # of a mutated input
MAX_CPU_SECONDS = 5.0  # of one input
FOLDER_VARIABLE = "FIVE_FUZZ_FOLDER"  # parent of the folders of processes that are killed
GROUPS = ("wire", "files")
MODULES = ("tests.fuzz.message_targets", "tests.fuzz.service_targets", "tests.fuzz.record_targets",
           "tests.fuzz.document_targets", "tests.fuzz.file_targets", "tests.fuzz.game_file_targets",
           "tests.fuzz.agent_targets", "tests.fuzz.real_client_targets", "tests.fuzz.dotaservice_targets",
           "tests.fuzz.client_targets")
SEEDS = Path(__file__).parent / "seeds"

Mutate = Callable[[bytes, Random], bytes]


class Finding(Exception):
    """An input on which a target breaks its contract."""


@dataclass(frozen=True)
class Target:
    """A decoder, or several that read the same bytes.

    Attributes:
        name: unique name, also of its folder of seeds.
        group: "wire" for messages and rows, "files" for files and blobs.
        decode: reads the bytes; raises one of ``refuses`` for invalid ones.
        valid: returns valid inputs, made by the project's own encoders.
        refuses: documented errors.
        decoders: functions of the project that it covers, as ``path:qualified name``.
        messages: full names of protobuf messages that it parses.
        mutate: changes an input while keeping its syntax valid.
        max_growth: bytes by which the resident memory may grow, besides 64 times the input.
    """

    name: str
    group: str
    decode: Callable[[bytes], object]
    valid: Callable[[], Sequence[bytes]]
    refuses: tuple[type[BaseException], ...] = (ValueError,)
    decoders: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    mutate: Mutate | None = None
    max_growth: int = 96 << 20

    @cached_property
    def seeds(self) -> dict[str, bytes]:
        """Valid inputs and stored files by name."""
        made = {f"valid-{i}": data for i, data in enumerate(self.valid())}
        return made | {path.name: path.read_bytes() for path in sorted((SEEDS / self.name).glob("*"))}

    def accepts(self, data: bytes) -> bool:
        """Return whether the target decodes the bytes. Raises Finding for a broken contract."""
        began = time.process_time()
        try:
            self.decode(data)
            accepted = True
        except self.refuses:
            accepted = False
        except Exception as error:
            raise Finding(f"{self.name}: {describe(error)}") from error
        if (took := time.process_time() - began) > MAX_CPU_SECONDS:
            raise Finding(f"{self.name}: {took:.1f} s of processor time for {len(data)} bytes")
        return accepted


def describe(error: BaseException) -> str:
    """Return type, message and origin of an unexpected error; equal for equal causes except for the message."""
    return f"{type(error).__name__} in {origin(error)}: {error}"


def origin(error: BaseException) -> str:
    """Return the last function of the project in an error's traceback as ``file:function``."""
    found = "unknown"
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if "/tests/fuzz/" not in code.co_filename and "/site-packages/" not in code.co_filename and any(
                f"/{part}/" in code.co_filename for part in ("libs", "services")):
            found = f"{Path(code.co_filename).name}:{code.co_name}"
        trace = trace.tb_next
    return found


def all_targets() -> dict[str, Target]:
    """Return every target by name."""
    found: dict[str, Target] = {}
    for module in MODULES:
        for target in import_module(module).TARGETS:
            assert target.name not in found and target.group in GROUPS, target.name
            found[target.name] = target
    return found


def memory_folder() -> Path:
    """Return a new folder of this process, in memory where the system has such a place: the targets write often."""
    parent = os.environ.get(FOLDER_VARIABLE) or ("/dev/shm" if Path("/dev/shm").is_dir() else None)
    path = Path(tempfile.mkdtemp(prefix="five-fuzz-", dir=parent))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def join_messages(messages: Iterable[bytes]) -> bytes:
    """Return a stream of messages as one input: the length (uint32) and the bytes of each."""
    return b"".join(struct.pack("<I", len(message)) + message for message in messages)


def split_messages(data: bytes, most: int = 16) -> list[bytes]:
    """Split an input into messages; the last may be truncated."""
    found, at = [], 0
    while at + 4 <= len(data) and len(found) < most:
        (size,) = struct.unpack_from("<I", data, at)
        found.append(data[at + 4:at + 4 + size])
        at += 4 + size
    return found
