"""Messages of arrays that a test puts together."""

from collections.abc import Collection, Mapping

from protos.five.v1.tensors_pb2 import TensorSet
from rapid import wire


def encode_set(arrays: Mapping[str, wire.Array], layout_hash: str, sparse: Collection[str] = (),
               zstd: bool = False) -> TensorSet:
    """A set of its own; otherwise as `rapid.wire.fill_set`."""
    message = TensorSet()
    wire.fill_set(message, arrays, layout_hash, sparse, zstd)
    return message
