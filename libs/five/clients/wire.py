"""Wire format of arrays: ``Tensor`` and ``TensorSet`` messages to and from numpy.

Decoding trusts nothing: the dtype comes from a closed list, and the bytes must be exactly what shape and dtype need,
before and after decompression. Every error is a ValueError that names the tensor.
"""

import functools
import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import zstandard
from google.protobuf.message import Message

from five.clients.raw_tensor_set import RawTensor, RawTensorSet
from five.protos.v1 import tensors_pb2
from rapid import codec
from rapid.packed_array import Bytes, PackedArray, PackedRows, word_count
from rapid.rpc.errors import LayoutMismatch

Array = npt.NDArray[Any]
Decoded = TypeVar("Decoded", Array, Array | PackedArray)
Tensor = tensors_pb2.Tensor
TensorSet = tensors_pb2.TensorSet

RAW = tensors_pb2.ENCODING_RAW
SPARSE = tensors_pb2.ENCODING_SPARSE
ZSTD = tensors_pb2.ENCODING_ZSTD
SPARSE_ZSTD = tensors_pb2.ENCODING_SPARSE_ZSTD
CHANGES = tensors_pb2.ENCODING_CHANGES
CHANGES_ZSTD = tensors_pb2.ENCODING_CHANGES_ZSTD
PACKED = (SPARSE, SPARSE_ZSTD, CHANGES, CHANGES_ZSTD)
COMPRESSED = (ZSTD, SPARSE_ZSTD, CHANGES_ZSTD)

DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(name)
    for name in ("float16", "float32", "int8", "int16", "int32", "int64", "uint8", "uint16", "bool")
}
# numpy computes dtype.name at each access, which takes longer than copying a small array.
_NAMES = {dtype: name for name, dtype in DTYPES.items()}
MAX_DIMENSIONS = 8
MAX_DECODED_BYTES = 512 << 20  # per tensor; the message limit bounds a set
ZSTD_LEVEL = 1


def _dtype_name(name: str, array: Array | PackedRows, encoding: tensors_pb2.Encoding) -> str:
    """Return the dtype's name. Raise ValueError for a dtype that the encoding does not support."""
    dtype = _NAMES.get(array.dtype)
    if dtype is None:
        raise ValueError(f"tensor {name!r}: dtype {array.dtype.name} cannot be sent; use one of {', '.join(DTYPES)}")
    if encoding in (SPARSE, SPARSE_ZSTD):
        if dtype != "float16":
            raise ValueError(f"tensor {name!r}: the sparse encodings require float16, not {dtype}")
    elif isinstance(array, PackedRows) and encoding not in PACKED:
        raise ValueError(f"tensor {name!r} is packed: it can only be sent sparse or as changes")
    return dtype


def _encode(array: Array | PackedRows, encoding: tensors_pb2.Encoding, period: int = 0) -> bytes | memoryview:
    """Return the encoded bytes; for RAW they are the array's own."""
    data: Bytes
    if encoding in (CHANGES, CHANGES_ZSTD):
        data = (array.changes(period).data if isinstance(array, PackedRows)
                else codec.packed_changes(np.ascontiguousarray(array), period))
    elif isinstance(array, PackedRows):
        data = array.joined().data
    elif encoding == RAW:
        return array.data.cast("B") if array.flags.c_contiguous and array.size else array.tobytes()
    else:
        data = pack(array).data if encoding in (SPARSE, SPARSE_ZSTD) else array.tobytes()
    if encoding in COMPRESSED:
        data = zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(data)
    return data


def _decompress(name: str, data: Bytes, limit: int) -> bytes:
    try:
        announced = zstandard.get_frame_parameters(data).content_size
        if announced > limit:
            raise ValueError(f"tensor {name!r}: its compressed frame announces {announced} bytes, more than {limit}")
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=limit, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise ValueError(f"tensor {name!r}: its bytes are not a zstd frame of known size ({error})") from None


def pack(array: npt.NDArray[np.float16]) -> PackedArray:
    """Encode a float16 array as sparse."""
    return PackedArray.of(array.shape, codec.packed(np.ascontiguousarray(array).reshape(-1)))


def unpack(array: PackedArray) -> Array:
    """Decode a packed array."""
    words = codec.unpacked(array.data, word_count(array.shape, array.dtype))
    if array.period and array.size:
        codec.restore(words.view(np.uint16).reshape(array.shape[0], -1), array.period)
    return words.view(array.dtype).reshape(array.shape)


def decode(tensor: Tensor | RawTensor, max_bytes: int = MAX_DECODED_BYTES) -> Array:
    """Return the array of a message, read-only where the bytes need no decoding.

    Raises ValueError, naming the tensor, when its dtype is unknown, its bytes are not exactly what its shape needs, or
    decoding would take more than ``max_bytes``.
    """
    dtype, count, data = _check_header(tensor, max_bytes)
    if tensor.encoding in PACKED:
        try:
            return unpack(PackedArray(tensor.shape, data, dtype, tensor.period))
        except ValueError as error:
            raise ValueError(f"tensor {tensor.name!r}: {error}") from None
    return _decode_plain(tensor, dtype, count, data)


def decode_packed(tensor: Tensor | RawTensor, max_bytes: int = MAX_DECODED_BYTES) -> Array | PackedArray:
    """Decode like `decode`, but keep validated sparse encodings packed."""
    array = decode_stored(tensor, max_bytes)
    return unpack(array) if isinstance(array, PackedArray) and array.period else array


def decode_stored(tensor: Tensor | RawTensor, max_bytes: int = MAX_DECODED_BYTES) -> Array | PackedArray:
    """Decode like `decode_packed`, but keep row-to-row changes packed too."""
    dtype, count, data = _check_header(tensor, max_bytes)
    if tensor.encoding in PACKED:
        try:
            return PackedArray(tensor.shape, data, dtype, tensor.period)
        except ValueError as error:
            raise ValueError(f"tensor {tensor.name!r}: {error}") from None
    return _decode_plain(tensor, dtype, count, data)


def _check_header(tensor: Tensor | RawTensor, max_bytes: int) -> tuple[np.dtype[Any], int, Bytes]:
    """Return dtype, number of values and decompressed bytes of a tensor. Raise ValueError as `decode` does."""
    name = tensor.name
    dtype = DTYPES.get(tensor.dtype)
    if dtype is None:
        raise ValueError(f"tensor {name!r}: unknown dtype {tensor.dtype!r}; one of {', '.join(DTYPES)}")
    shape = tuple(tensor.shape)
    if len(shape) > MAX_DIMENSIONS:
        raise ValueError(f"tensor {name!r}: {len(shape)} dimensions, at most {MAX_DIMENSIONS}")
    count = math.prod(shape)
    needed = count * dtype.itemsize
    if needed > max_bytes:
        raise ValueError(f"tensor {name!r}: shape {list(shape)} of {tensor.dtype} needs {needed} bytes, "
                         f"the limit is {max_bytes}")
    encoding = tensor.encoding
    data = tensor.data
    if encoding in PACKED:
        changes = encoding in (CHANGES, CHANGES_ZSTD)
        if not changes and tensor.dtype != "float16":
            raise ValueError(f"tensor {name!r}: the sparse encodings require float16, not {tensor.dtype}")
        if changes == (tensor.period == 0):
            raise ValueError(f"tensor {name!r}: period {tensor.period} is invalid for encoding {encoding}")
        if changes and (not shape or dtype == np.bool_):  # bools need validated values, which packed arrays do not have
            raise ValueError(f"tensor {name!r}: rows of {tensor.dtype} {list(shape)} cannot be sent as changes")
        if encoding in COMPRESSED:
            data = _decompress(name, data, -(-needed // 16) + needed)
    elif encoding == ZSTD:
        data = _decompress(name, data, needed)
    elif encoding != RAW:
        raise ValueError(f"tensor {name!r}: unknown encoding {encoding}")
    return dtype, count, data


def _decode_plain(tensor: Tensor | RawTensor, dtype: np.dtype[Any], count: int, data: Bytes) -> Array:
    name, shape = tensor.name, tuple(tensor.shape)
    if len(data) != count * dtype.itemsize:
        raise ValueError(f"tensor {name!r}: {len(data)} bytes where shape {list(shape)} of {tensor.dtype} "
                         f"needs {count * dtype.itemsize}")
    if dtype == np.bool_ and count and np.frombuffer(data, np.uint8).max() > 1:
        raise ValueError(f"tensor {name!r}: a bool must be 0 or 1")
    return np.frombuffer(data, dtype).reshape(shape)


def fill_tensor_set(target: TensorSet, arrays: Mapping[str, Array | PackedRows], layout_hash: str,
             sparse: Collection[str] = (), zstd: bool = False) -> int:
    """Write arrays of one layout into the empty ``target``, and return their bytes.

    Filling in place matters: protobuf serialises and parses a message that is passed to another's constructor.
    ``sparse`` names float16 arrays that are mostly zero, which may be packed already. ``zstd`` compresses all arrays,
    which pays where the network is the bottleneck. Raises ValueError for an unknown dtype, for a sparse array that is
    not float16, and for a packed array that is not named sparse.
    """
    plain, packed = (ZSTD, SPARSE_ZSTD) if zstd else (RAW, SPARSE)
    target.layout_hash = layout_hash
    total = 0
    for name, array in arrays.items():
        encoding = packed if name in sparse else plain
        dtype = _dtype_name(name, array, encoding)
        data = bytes(_encode(array, encoding))
        target.tensors.add(name=name, dtype=dtype, shape=array.shape, encoding=encoding, data=data)
        total += len(data)
    return total


def serialize_with_set(message: Message, field: str, arrays: Mapping[str, Array | PackedRows], layout_hash: str,
             sparse: Collection[str] = (), zstd: bool = False, changes: Collection[str] = (), period: int = 0) -> bytes:
    """Return the bytes of ``message`` with the arrays in its empty TensorSet ``field``, encoded as by
    `fill_tensor_set`.

    Each array is copied once instead of three times. The field follows the others, because a protobuf message is its
    fields in any order. ``changes`` names arrays sent as row-to-row changes, with every ``period``-th row whole. Raises
    ValueError as `fill_tensor_set` does.
    """
    plain, packed, changed = (ZSTD, SPARSE_ZSTD, CHANGES_ZSTD) if zstd else (RAW, SPARSE, CHANGES)
    pieces: list[bytes | memoryview] = [_set_start(layout_hash)]
    for name, array in arrays.items():
        encoding = changed if name in changes else packed if name in sparse else plain
        every = period if name in changes else 0
        dtype = _dtype_name(name, array, encoding)
        data = _encode(array, encoding, every)
        pieces += (_tensor_start(name, dtype, array.shape, encoding, every, len(data)), data)
    size = sum(map(len, pieces))
    return b"".join((message.SerializeToString(), _tag(message, field), _number(size), *pieces))


# A length-delimited field is its number and wire type 2 in one varint, its length, and its bytes.
_LENGTH_DELIMITED = 2


def _number(value: int) -> bytes:
    """Encode a varint: seven bits per byte, lowest first, with the highest bit set in all but the last."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _tag(message: Message, field: str) -> bytes:
    return _number(message.DESCRIPTOR.fields_by_name[field].number << 3 | _LENGTH_DELIMITED)


_TENSORS, _DATA = _tag(TensorSet(), "tensors"), _tag(Tensor(), "data")


@functools.lru_cache(maxsize=64)
def _set_start(layout_hash: str) -> bytes:
    """Return a TensorSet's bytes before its first tensor."""
    return TensorSet(layout_hash=layout_hash).SerializeToString()


def _tensor_start(name: str, dtype: str, shape: tuple[int, ...], encoding: tensors_pb2.Encoding, period: int, size: int
                  ) -> bytes:
    """Return a TensorSet's field of a Tensor up to its data of ``size`` bytes."""
    # Sizes of packed arrays vary, so caching their starts would only fill the cache.
    return (_started if encoding == RAW else _start)(name, dtype, shape, encoding, period, size)


def _start(name: str, dtype: str, shape: tuple[int, ...], encoding: tensors_pb2.Encoding, period: int, size: int
           ) -> bytes:
    head = _head(name, dtype, shape, encoding, period)
    length = _number(size)
    return b"".join((_TENSORS, _number(len(head) + len(length) + size), head, length))


_started = functools.lru_cache(maxsize=4096)(_start)


@functools.lru_cache(maxsize=4096)
def _head(name: str, dtype: str, shape: tuple[int, ...], encoding: tensors_pb2.Encoding, period: int) -> bytes:
    """Return a Tensor's bytes up to the length of its data."""
    start = Tensor(name=name, dtype=dtype, shape=shape, encoding=encoding, period=period)
    return start.SerializeToString() + _DATA


def decode_set(message: TensorSet, layout_hash: str | None,
               max_bytes: int = MAX_DECODED_BYTES) -> dict[str, Array]:
    """Return arrays by name. ``layout_hash`` None accepts any layout.

    Raises LayoutMismatch naming both layouts, and ValueError for a malformed tensor, a duplicate name, and arrays of
    more than ``max_bytes`` together.
    """
    return _decode_all(decode, message, layout_hash, max_bytes)


def decode_packed_set(message: TensorSet | RawTensorSet, layout_hash: str | None,
                      max_bytes: int = MAX_DECODED_BYTES) -> dict[str, Array | PackedArray]:
    """Decode like `decode_set`, but keep sparse encodings packed. ``max_bytes`` limits the unpacked arrays."""
    return _decode_all(decode_packed, message, layout_hash, max_bytes)


def decode_stored_set(message: TensorSet | RawTensorSet, layout_hash: str | None,
                      max_bytes: int = MAX_DECODED_BYTES) -> dict[str, Array | PackedArray]:
    """Decode like `decode_packed_set`, but keep row-to-row changes packed too."""
    return _decode_all(decode_stored, message, layout_hash, max_bytes)


def _decode_all(each: Callable[[Any, int], Decoded], message: TensorSet | RawTensorSet, layout_hash: str | None,
                max_bytes: int) -> dict[str, Decoded]:
    if layout_hash is not None and message.layout_hash != layout_hash:
        raise LayoutMismatch(message.layout_hash, layout_hash)
    arrays: dict[str, Decoded] = {}
    left = max_bytes
    for tensor in message.tensors:
        if tensor.name in arrays:
            raise ValueError(f"tensor {tensor.name!r} occurs twice")
        array = each(tensor, left)
        left -= array.size * array.dtype.itemsize
        arrays[tensor.name] = array
    return arrays


def require_layout(arrays: Mapping[str, Array | PackedArray],
                   specs: Mapping[str, tuple[tuple[int, ...], npt.DTypeLike]], *lead: int) -> None:
    """Require exactly the arrays of ``specs``, each of shape (*lead, *shape) and its dtype.

    Raises ValueError naming the first array that is missing, unknown or different.
    """
    for name in arrays:
        if name not in specs:
            raise ValueError(f"tensor {name!r} is not part of the layout; it has {', '.join(specs)}")
    for name, (shape, dtype) in specs.items():
        array = arrays.get(name)
        if array is None:
            raise ValueError(f"tensor {name!r} is missing")
        expected = (*lead, *shape)
        if array.shape != expected or array.dtype != np.dtype(dtype):
            raise ValueError(f"tensor {name!r}: {array.dtype.name} {list(array.shape)}, expected "
                             f"{np.dtype(dtype).name} {list(expected)}")


def layout_bytes(specs: Mapping[str, tuple[tuple[int, ...], npt.DTypeLike]], rows: int) -> int:
    """Return the bytes of ``rows`` rows of a layout's arrays, which limit what a message of that layout may unpack."""
    return rows * sum(math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in specs.values())


def decode_bytes(name: str, data: bytes, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> Array:
    """Return a plain ``bytes`` field as a read-only array. Raise ValueError naming the field when its size does not
    fit."""
    wanted = np.dtype(dtype)
    needed = math.prod(shape) * wanted.itemsize
    if len(data) != needed:
        raise ValueError(f"{name}: {len(data)} bytes where {wanted.name} {list(shape)} needs {needed}")
    return np.frombuffer(data, wanted).reshape(shape)


