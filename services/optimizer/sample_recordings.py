"""Recordings of samples on which plans are checked, copied from the buffer and stored as blobs."""

import logging
from typing import Any

import numpy as np
import numpy.typing as npt

from five.agent.learning.buffer import SampleBuffer
from five.agent.surgery.check import RecordedSamples
from rapid import tensorfile
from rapid.blobs import BlobMissing, BlobStore, Ref
from rapid.store.operation_blobs import recording_name

log = logging.getLogger(__name__)
SAMPLES = 32
MAX_RECORDINGS = 5


class SampleRecordings:
    """Recordings of one run, of at most ``samples`` samples each.

    A newly started optimizer has an empty buffer and uses an earlier recording of the run.

    Attributes:
        samples: number of samples that the last call of `take` returned; 0 before it.
    """

    def __init__(self, buffer: SampleBuffer, blobs: BlobStore, run: str, layout: str, samples: int = SAMPLES) -> None:
        self._buffer = buffer
        self._blobs = blobs
        self._run = run
        self._layout = layout
        self.samples = 0
        self._most = samples

    def take(self, operation: str) -> tuple[RecordedSamples, Ref]:
        """Return an operation's samples and their blob; the same samples in every call.

        Raises RuntimeError when there are neither samples nor an earlier recording.
        """
        name = recording_name(self._run, operation)
        found = self._stored(name) or self._record_samples(name) or self._newest()
        if found is None:
            raise RuntimeError("the optimizer has no samples to check the plan on, and there is no earlier "
                               "recording: let the run play for a while first")
        arrays, ref = found
        self.samples = int(arrays["actions"].shape[1])
        return RecordedSamples.from_batch(arrays), ref

    def _record_samples(self, name: str) -> tuple[dict[str, npt.NDArray[Any]], Ref] | None:
        """Store samples of the buffer under a name and remove the oldest recordings; None for an empty buffer."""
        arrays = self._buffer.peek(self._most, seed=len(name))
        if arrays is None:
            return None
        index = tensorfile.index_of(arrays, {"layout": self._layout})
        ref = self._blobs.put([index.header(), *tensorfile.pieces_of(index, arrays)], name)
        for old in self._names()[:-MAX_RECORDINGS]:
            if old != name:
                self._blobs.remove_ref(old)
        return arrays, ref

    def _names(self) -> list[str]:
        names = self._blobs.refs(recording_name(self._run, ""))
        return sorted(names, key=lambda name: name.rpartition("/")[2].split("-")[1:])

    def _stored(self, name: str) -> tuple[dict[str, npt.NDArray[Any]], Ref] | None:
        try:
            ref = self._blobs.ref(name)
            arrays, index = tensorfile.parse(self._blobs.get_array(ref))
        except BlobMissing:
            return None
        if index.meta.get("layout") != self._layout:
            return None
        return {n: np.asarray(a) for n, a in arrays.items()}, ref

    def _newest(self) -> tuple[dict[str, npt.NDArray[Any]], Ref] | None:
        for name in reversed(self._names()):
            found = self._stored(name)
            if found is not None:
                return found
        return None
