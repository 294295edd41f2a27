"""Requests and replies as arrays."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rapid.packed_array import PackedArray

if TYPE_CHECKING:
    from five.services.inference.staging import StagedArrays

Array = npt.NDArray[Any]
Arrays = dict[str, Array]


@dataclass
class Request:
    """Decoded client message: n team-steps of n different sessions.

    The arrays of ``observations`` have n rows; they are sparse only if the batcher supports it. Those of ``states``
    have one row for each RESTORE row, and ``replayed`` int16 [m, H, 6] has one for each REPLAY row.
    """

    sessions: list[int]
    policies: npt.NDArray[np.int64]
    flags: npt.NDArray[np.uint8]
    observations: Mapping[str, Array | PackedArray]
    states: Arrays | None = None
    replayed: npt.NDArray[np.int16] | None = None
    stream: int = 0
    staged: "StagedArrays | None" = None  # the observations on their way to a device

    @property
    def nbytes(self) -> int:
        """Return the bytes of the arrays as received, before they are staged."""
        return sum(array.nbytes for arrays in (self.observations, self.states or {}) for array in arrays.values())


@dataclass(frozen=True)
class Reply:
    """Reply with rows in the order of the request. If sessions are ``unknown``, nothing was evaluated and it is empty.

    ``states`` and ``auxiliary`` have one row for each WANT_STATE row, in their order, and ``policy_debug`` one for each
    WANT_POLICY_DEBUG row. The batch was closed at ``closed_ns`` and its forward pass began at
    ``launched_ns``, nanoseconds since 1970.
    """

    unknown: list[int]
    actions: npt.NDArray[np.int16]
    log_probabilities: npt.NDArray[np.float32]
    values: npt.NDArray[np.float32]
    versions: npt.NDArray[np.int64]
    states: Arrays
    auxiliary: Arrays
    queue_us: int
    forward_us: int
    reward_std: float
    policy_debug: Arrays = field(default_factory=dict)
    closed_ns: int = 0
    launched_ns: int = 0


def unknown_reply(sessions: list[int]) -> Reply:
    """Return the reply to a request with unknown sessions. Nothing of it was evaluated."""
    none = np.zeros(0, np.float32)
    return Reply(sessions, none.astype(np.int16), none, none, none.astype(np.int64), {}, {}, 0, 0, 1.0)
