"""A message with a TensorSet in it, read where it lies: its arrays are parts of the message's bytes.

protobuf copies a tensor's bytes when it parses a message, and again each time that they are read. Here the message is
walked by its wire format (fields of a tag, and a length or a number), its other fields are left to protobuf.
"""

from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

from google.protobuf.message import DecodeError, Message

from five.protos.v1 import tensors_pb2

MessageT = TypeVar("MessageT", bound=Message)
# The last three bits of a tag.
VARINT, FIXED64, LENGTH_DELIMITED, FIXED32 = 0, 1, 2, 5
LONGEST_VARINT = 10
_LAYOUT = tensors_pb2.TensorSet.LAYOUT_HASH_FIELD_NUMBER << 3 | LENGTH_DELIMITED
_TENSOR = tensors_pb2.TensorSet.TENSORS_FIELD_NUMBER << 3 | LENGTH_DELIMITED
_DATA = tensors_pb2.Tensor.DATA_FIELD_NUMBER << 3 | LENGTH_DELIMITED


class TensorHeader(NamedTuple):
    """What a ``Tensor`` says besides its data."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    encoding: int
    period: int


class RawTensor(NamedTuple):
    """What a ``Tensor`` says, its data as a part of the message that it came in."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    encoding: int
    period: int
    data: memoryview


class RawTensorSet(NamedTuple):
    """What a ``TensorSet`` says: its tensors' heads, and where in the message their data begin, and their sizes."""

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
    """A message's bytes, and where the pieces of its set lie in them."""

    data: bytes
    pieces: list[tuple[int, int]]


class _Known(NamedTuple):
    """How a tensor began: ``written`` up to its data's length, empty where that is not all of it, and ``whole`` with
    all lengths, of so much data."""

    whole: bytes
    size: int
    written: bytes
    head: TensorHeader


class TensorSetReader(Generic[MessageT]):
    """Reads messages of one type. Those of a run begin their tensors alike: what the last one's said is remembered.

    May be used from several threads.
    """

    def __init__(self, message: type[MessageT], field: str) -> None:
        """``field`` of the message is the TensorSet."""
        self._type = message
        self._field = message.DESCRIPTOR.fields_by_name[field].number << 3 | LENGTH_DELIMITED
        self._known: list[_Known] = []

    def split(self, data: bytes) -> tuple[MessageT, SplitMessage]:
        """The message without the set, and the set, not looked at yet. Raises ValueError for bytes that are no such
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
            raise ValueError(f"the message is no {self._type.DESCRIPTOR.name}: {error}") from None

    def tensors(self, split: SplitMessage) -> RawTensorSet:
        """What the set says; one that came in pieces is the pieces' fields together, as protobuf has it. Raises
        ValueError for bytes that are no TensorSet."""
        layout, known, data = "", self._known, split.data
        found: list[_Known] = []
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


def _tensor(message: bytes, start: int, begin: int, end: int, known: _Known | None) -> tuple[_Known, int]:
    """How the tensor at [begin, end) begins, whose field does at ``start``, and where its data does."""
    if known is not None and known.written and message.startswith(known.written, begin):
        size, at = _number(message, begin + len(known.written), end)
        if at + size == end:
            return known._replace(whole=message[start:at], size=size), at
    data, others, written = (end, end), [], b""
    for tag, first, at, behind in _fields(message, begin, end):
        if tag == _DATA:
            data = at, behind
            # To be recognised by its beginning a tensor has its data last, as everybody writes it.
            written = message[begin:first] + bytes([_DATA]) if behind == end else b""
        else:
            others.append(message[first:behind])
    try:
        tensor = tensors_pb2.Tensor.FromString(b"".join(others))
    except DecodeError as error:
        raise ValueError(f"a tensor of the message is malformed: {error}") from None
    head = TensorHeader(tensor.name, tensor.dtype, tuple(tensor.shape), tensor.encoding, tensor.period)
    return _Known(message[start:data[0]], data[1] - data[0], written, head), data[0]


def _fields(message: bytes, at: int, last: int) -> Iterator[tuple[int, int, int, int]]:
    """Of each field in [at, last) its tag, where the tag begins, and where its value (without a length before it)
    begins and ends."""
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
    """A varint and where it ends."""
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
        raise ValueError("the message is malformed: its layout is no text") from None
