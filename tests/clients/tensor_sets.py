"""Tensor messages for tests."""

from collections.abc import Collection, Mapping

from five.clients import wire
from five.protos.v1.tensors_pb2 import Tensor, TensorSet
from rapid.packed_array import PackedRows


def encode_set(arrays: Mapping[str, wire.Array | PackedRows], layout_hash: str, sparse: Collection[str] = (),
               zstd: bool = False) -> TensorSet:
    """Return a new TensorSet filled by `five.clients.wire.fill_tensor_set`."""
    message = TensorSet()
    wire.fill_tensor_set(message, arrays, layout_hash, sparse, zstd)
    return message


def encode(name: str, array: wire.Array, encoding: int = wire.RAW) -> Tensor:
    """Return the only tensor of a set."""
    sparse = [name] if encoding in (wire.SPARSE, wire.SPARSE_ZSTD) else []
    return encode_set({name: array}, "", sparse, encoding in (wire.ZSTD, wire.SPARSE_ZSTD)).tensors[0]
