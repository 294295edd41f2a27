"""Names of checkpoint files: version, writer, and a signature that only the run's optimizers can make.

Every process that mounts the blobs could write a file. The signature (HMAC, RFC 2104) proves to the next holder of the
publisher's lease that its predecessor wrote a file that Redis missed. Its key is in Redis, readable by optimizers only.
"""

import hashlib
import hmac
import re
from typing import NamedTuple

from rapid.blobs import Ref

_NAME = re.compile(r"(\d{12,18})(?:\.(\d{6,12})\.(\d{8,16})(?:\.([0-9a-f]{32}))?)?", re.ASCII)


class CheckpointName(NamedTuple):
    """Parts of a checkpoint's name: its version, the writer's epoch and fence (0: written without a fencing token),
    and the signature ('': of an earlier release)."""

    version: int
    epoch: int = 0
    fence: int = 0
    signature: str = ""

    @classmethod
    def parse(cls, name: str) -> "CheckpointName | None":
        """Return the parts of a name; None for any other name."""
        found = _NAME.fullmatch(name)
        return None if found is None else cls(int(found[1]), int(found[2] or 0), int(found[3] or 0), found[4] or "")

    def text(self) -> str:
        """Return the name. Names of different writers differ, so no writer overwrites another's file."""
        writer = f".{self.epoch:06d}.{self.fence:08d}" if self.fence else ""
        return f"{self.version:012d}{writer}" + (f".{self.signature}" if self.signature else "")

    @property
    def writer(self) -> tuple[int, int]:
        """Epoch and fence of the writer; a later writer's are greater."""
        return self.epoch, self.fence

    def signed(self, key: bytes, ref: Ref) -> "CheckpointName":
        """Return the name with the signature of its version, writer and contents."""
        message = f"checkpoint {self.version} {self.epoch} {self.fence} {ref.digest} {ref.size}".encode()
        return self._replace(signature=hmac.new(key, message, hashlib.sha256).hexdigest()[:32])

    def is_signed(self, key: bytes, ref: Ref) -> bool:
        """Return whether a holder of ``key`` wrote these contents under this name."""
        return hmac.compare_digest(self.signature, self.signed(key, ref).signature)
