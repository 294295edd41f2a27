"""Recurrent states of the sessions in batched storage, one slot for each session, held under a lease."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from five.services.inference.staging import to_device
from rapid.rpc.errors import Exhausted

StateSpecs = Mapping[str, tuple[tuple[int, ...], Any]]
UNKNOWN = -1
_INITIAL_SLOTS = 64


class SessionsExhausted(Exhausted):
    """Error of a table that holds ``max_sessions`` sessions."""


class SessionTable:
    """States of all sessions in one tensor for each name, [slots, ...]: a batch is one index operation.

    Not thread safe: only the batcher's thread uses it. ``expire`` closes sessions without a request for
    ``lease_seconds``.
    """

    def __init__(self, specs: StateSpecs, device: torch.device, max_sessions: int, lease_seconds: float) -> None:
        self._specs = {name: tuple(shape) for name, (shape, _) in specs.items()}
        self._device = device
        self._max = max_sessions
        self._lease = lease_seconds
        self._slots: dict[int, int] = {}
        self._free: list[int] = []
        self._sessions = np.zeros(0, np.int64)
        self._used_at = np.zeros(0, np.float64)
        self.storage: dict[str, torch.Tensor] = {
            name: torch.zeros((0, *shape), device=device) for name, shape in self._specs.items()}
        self._grow(min(_INITIAL_SLOTS, max_sessions))

    def __len__(self) -> int:
        return len(self._slots)

    def find(self, sessions: Sequence[int]) -> npt.NDArray[np.int64]:
        """Return the slots of the sessions, UNKNOWN (-1) for sessions without one."""
        get = self._slots.get
        return np.array([get(session, UNKNOWN) for session in sessions], np.int64)

    def open(self, sessions: Sequence[int], slots: npt.NDArray[np.int64]) -> None:
        """Assign a zeroed slot, in place, to every session whose entry in ``slots`` is UNKNOWN.

        Raise SessionsExhausted, and open none, if the table would exceed its limit.
        """
        missing = np.flatnonzero(slots == UNKNOWN)
        if len(self._slots) + len(missing) > self._max:
            raise SessionsExhausted(
                f"{len(missing)} new sessions do not fit: {len(self._slots)} of {self._max} are open. Raise "
                "services.inference.max_sessions, lower session_seconds, or add servers")
        while len(self._free) < len(missing):
            self._grow(min(2 * len(self._used_at), self._max))
        for i in missing.tolist():
            session = sessions[i]
            slot = self._free.pop()
            self._slots[session] = slot
            self._sessions[slot] = session
            slots[i] = slot
        if len(missing):
            self.clear(slots[missing])

    def close(self, sessions: Sequence[int]) -> None:
        """Close the sessions. Unknown sessions are ignored."""
        for session in sessions:
            slot = self._slots.pop(session, None)
            if slot is not None:
                self._free.append(slot)

    def touch(self, slots: npt.NDArray[np.int64], now: float) -> None:
        """Renew the leases at monotonic time ``now``, seconds."""
        self._used_at[slots] = now

    def expire(self, now: float) -> int:
        """Close the sessions whose lease ended before ``now``. Return their number."""
        if not self._slots:
            return 0
        open_slots = np.fromiter(self._slots.values(), np.int64, len(self._slots))
        lapsed = open_slots[self._used_at[open_slots] < now - self._lease]
        self.close(self._sessions[lapsed].tolist())
        return len(lapsed)

    def clear(self, slots: npt.NDArray[np.int64]) -> None:
        """Set the states of ``slots`` to zero, as at the start of a game."""
        index = self._index(slots)
        for storage in self.storage.values():
            storage.index_fill_(0, index, 0.0)

    def write(self, slots: npt.NDArray[np.int64], states: Mapping[str, npt.NDArray[np.float32]]) -> None:
        """Overwrite the states of ``slots`` with arrays [len(slots), ...]. Raise ValueError if names or shapes
        differ."""
        if set(states) != set(self._specs):
            raise ValueError(f"states: {sorted(states)} were sent; this model has {sorted(self._specs)}")
        for name, shape in self._specs.items():
            if states[name].shape != (len(slots), *shape):
                raise ValueError(f"state {name!r} has shape {states[name].shape}, expected {(len(slots), *shape)}")
        index = self._index(slots)
        for name, storage in self.storage.items():
            storage[index] = to_device(np.array(states[name], np.float32), self._device)

    def gather(self, slots: npt.NDArray[np.int64]) -> dict[str, torch.Tensor]:
        """Return a copy of the states, [len(slots), ...]."""
        index = self._index(slots)
        return {name: storage[index] for name, storage in self.storage.items()}

    def gather_at(self, index: torch.Tensor, out: dict[str, torch.Tensor] | None = None) -> dict[str, torch.Tensor]:
        """Return a copy of the states of slots on the device, int64 [n]; write into ``out`` [n, ...] if given."""
        if out is None:
            return {name: storage.index_select(0, index) for name, storage in self.storage.items()}
        for name, storage in self.storage.items():
            torch.index_select(storage, 0, index, out=out[name])
        return out

    def take(self, slots: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[np.float32]]:
        """Return a copy of the states [len(slots), ...] as arrays, from a table in host memory."""
        return {name: storage.numpy()[slots] for name, storage in self.storage.items()}

    def put(self, slots: npt.NDArray[np.int64], states: Mapping[str, npt.NDArray[np.float32]]) -> None:
        """Store states [len(slots), ...] that ``take`` returned and a forward pass updated."""
        for name, storage in self.storage.items():
            storage.numpy()[slots] = states[name]

    def scatter(self, slots: npt.NDArray[np.int64], states: Mapping[str, torch.Tensor]) -> None:
        """Store states [len(slots), ...] that ``gather`` returned and a forward pass updated."""
        self.scatter_at(self._index(slots), states)

    def scatter_at(self, index: torch.Tensor, states: Mapping[str, torch.Tensor]) -> None:
        """Store states of slots that are on the device, int64 [n]."""
        for name, storage in self.storage.items():
            storage[index] = states[name].to(storage.dtype)

    def _index(self, slots: npt.NDArray[np.int64]) -> torch.Tensor:
        return to_device(slots, self._device)

    def _grow(self, slots: int) -> None:
        before = len(self._used_at)
        more = slots - before
        self._sessions = np.concatenate([self._sessions, np.zeros(more, np.int64)])
        self._used_at = np.concatenate([self._used_at, np.zeros(more)])
        for name, storage in self.storage.items():
            fresh = torch.zeros((more, *self._specs[name]), device=self._device)
            self.storage[name] = torch.cat([storage, fresh])
        # The lowest slots are used first, so that they are contiguous in memory.
        self._free = [*range(slots - 1, before - 1, -1), *self._free]
