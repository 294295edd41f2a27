"""Parser of messages with a TensorSet that does not copy the arrays.

protobuf copies a tensor's bytes when it parses a message, and again at each read. This parser walks the wire format
(fields of a tag, and a length or a number), and leaves the other fields to protobuf. Arrays are views of the message's
bytes.
"""

from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

from google.protobuf.message import DecodeError, Message

from five.protos.v1 import tensors_pb2

MessageT = TypeVar("MessageT", bound=Message)
# Wire types: the last three bits of a tag.
VARINT, FIXED64, LENGTH_DELIMITED, FIXED32 = 0, 1, 2, 5
LONGEST_VARINT = 10
_LAYOUT = tensors_pb2.TensorSet.LAYOUT_HASH_FIELD_NUMBER << 3 | LENGTH_DELIMITED
_TENSOR = tensors_pb2.TensorSet.TENSORS_FIELD_NUMBER << 3 | LENGTH_DELIMITED
_DATA = tensors_pb2.Tensor.DATA_FIELD_NUMBER << 3 | LENGTH_DELIMITED


class TensorHeader(NamedTuple):
    """Fields of a ``Tensor`` except its data."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    encoding: int
    period: int


class RawTensor(NamedTuple):
    """Fields of a ``Tensor``, with its data as a view of the message."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    encoding: int
    period: int
    data: memoryview


class RawTensorSet(NamedTuple):
    """Fields of a ``TensorSet``: headers of its tensors, and offset and size of their data in the message."""

    layout_hash: str
    heads: tuple[TensorHeader, ...]
    message: bytes
    places: list[tuple[int, int]]

    @property
    def tensors(self) -> list[RawTensor]:
        """The tensors one by one."""
        whole = memoryview(self.message)
        return [RawTensor(*head, whole[begin:begin + size])
                for head, (begin, size) in zip(self.heads, self.places, strict=True)]


class SplitMessage(NamedTuple):
    """A message's bytes, and the byte ranges of its TensorSet field."""

    data: bytes
    pieces: list[tuple[int, int]]


class _CachedTensor(NamedTuple):
    """Cached beginning of a tensor.

    ``whole`` is everything before its data, including lengths, for data of ``size`` bytes. ``written`` is the part
    between the tensor's length and its data's length, empty when the data are not last.
    """

    whole: bytes
    size: int
    written: bytes
    head: TensorHeader


class TensorSetReader(Generic[MessageT]):
    """Parser of one message type. It caches the tensors' headers, because messages of a run have equal ones.

    It may be used from several threads.
    """

    def __init__(self, message: type[MessageT], field: str) -> None:
        """``field`` is the message's field of type TensorSet."""
        self._type = message
        self._field = message.DESCRIPTOR.fields_by_name[field].number << 3 | LENGTH_DELIMITED
        self._known: list[_CachedTensor] = []

    def split(self, data: bytes) -> tuple[MessageT, SplitMessage]:
        """Return the message without the TensorSet, and the unparsed TensorSet. Raise ValueError for an invalid
        message."""
        pieces, others = [], []
        for tag, start, begin, end in _fields(data, 0, len(data)):
            if tag == self._field:
                pieces.append((begin, end))
            else:
                others.append(data[start:end])
        try:
            return self._type.FromString(b"".join(others)), SplitMessage(data, pieces)
        except DecodeError as error:
            raise ValueError(f"the message is not a {self._type.DESCRIPTOR.name}: {error}") from None

    def tensors(self, split: SplitMessage) -> RawTensorSet:
        """Parse the TensorSet. Pieces are merged as protobuf does. Raise ValueError for an invalid TensorSet."""
        layout, known, data = "", self._known, split.data
        found: list[_CachedTensor] = []
        places: list[tuple[int, int]] = []
        for at, last in split.pieces:
            while at < last:
                before = known[len(found)] if len(found) < len(known) else None
                if before is not None and before.written and data.startswith(before.whole, at):
                    begin = at + len(before.whole)
                    end = begin + before.size
                    if end > last:
                        raise ValueError("the message is malformed: a tensor does not end within it")
                    found.append(before)
                    places.append((begin, before.size))
                    at = end
                    continue
                tag, start, begin, end = next(_fields(data, at, last))
                if tag == _TENSOR:
                    one, first = _tensor(data, start, begin, end, before)
                    found.append(one)
                    places.append((first, one.size))
                elif tag == _LAYOUT:
                    layout = _text(data[begin:end])
                at = end
        self._known = found
        return RawTensorSet(layout, tuple([one.head for one in found]), data, places)


def _tensor(message: bytes, start: int, begin: int, end: int, known: _CachedTensor | None) -> tuple[_CachedTensor, int]:
    """Return the header of the tensor at [begin, end), whose field starts at ``start``, and the offset of its data."""
    if known is not None and known.written and message.startswith(known.written, begin):
        size, at = _number(message, begin + len(known.written), end)
        if at + size == end:
            return known._replace(whole=message[start:at], size=size), at
    data, others, written = (end, end), [], b""
    for tag, first, at, behind in _fields(message, begin, end):
        if tag == _DATA:
            data = at, behind
            # Only a tensor with its data last can be recognised by its beginning. All writers put them last.
            written = message[begin:first] + bytes([_DATA]) if behind == end else b""
        else:
            others.append(message[first:behind])
    try:
        tensor = tensors_pb2.Tensor.FromString(b"".join(others))
    except DecodeError as error:
        raise ValueError(f"a tensor of the message is malformed: {error}") from None
    head = TensorHeader(tensor.name, tensor.dtype, tuple(tensor.shape), tensor.encoding, tensor.period)
    return _CachedTensor(message[start:data[0]], data[1] - data[0], written, head), data[0]


def _fields(message: bytes, at: int, last: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield tag, start of the tag, and start and end of the value (without a length) of each field in [at, last)."""
    while at < last:
        start = at
        tag, at = _number(message, at, last)
        kind = tag & 7
        if kind == LENGTH_DELIMITED:
            length, at = _number(message, at, last)
            end = at + length
        elif kind == VARINT:
            end = _number(message, at, last)[1]
        elif kind in (FIXED64, FIXED32):
            end = at + (8 if kind == FIXED64 else 4)
        else:
            raise ValueError(f"the message is malformed: a field of kind {kind} at byte {start}")
        if end > last or not tag >> 3:
            raise ValueError(f"the message is malformed: the field at byte {start} does not end within it")
        yield tag, start, at, end
        at = end


def _number(message: bytes, at: int, last: int) -> tuple[int, int]:
    """Return a varint and its end."""
    value = shift = 0
    while at < last and shift < 7 * LONGEST_VARINT:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("the message is malformed: it ends within a number")


def _text(data: bytes) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        raise ValueError("the message is malformed: its layout is not UTF-8") from None
