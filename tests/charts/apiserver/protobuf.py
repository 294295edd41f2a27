"""Decoder for Secrets in Kubernetes' protobuf encoding, which helm uses to store releases. Responses are JSON."""

import base64

from tests.charts.apiserver.kinds import Object

MAGIC = b"k8s\0"


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return value, at


def _message(data: bytes) -> dict[int, list[bytes]]:
    """Return length-delimited fields by number; skip numeric fields. Raises ValueError for wire types Kubernetes never
    writes."""
    found: dict[int, list[bytes]] = {}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        value, at = _varint(data, at)
        if tag & 7 == 2:
            found.setdefault(tag >> 3, []).append(data[at:at + value])
            at += value
        elif tag & 7:
            raise ValueError(f"wire type {tag & 7}")
    return found


def _map(entries: list[bytes]) -> dict[str, bytes]:
    return {pair[1][0].decode(): pair.get(2, [b""])[0] for pair in map(_message, entries)}


def secret(body: bytes) -> Object:
    """Decode a Secret to its JSON form. Raises ValueError for another kind."""
    envelope = _message(body.removeprefix(MAGIC))
    head, value = _message(envelope[1][0]), _message(envelope[2][0])
    if head[2] != [b"Secret"]:
        raise ValueError(f"{head[2][0].decode()} in protobuf")
    given = _message(value[1][0])
    numbers = {"name": 1, "namespace": 3, "uid": 5, "resourceVersion": 6}
    metadata: Object = {k: given[n][0].decode() for k, n in numbers.items() if given.get(n, [b""])[0]}
    for name, number in (("labels", 11), ("annotations", 12)):
        metadata[name] = {k: v.decode() for k, v in _map(given.get(number, [])).items()}
    return {"apiVersion": head[1][0].decode(), "kind": "Secret", "metadata": metadata, "type": value[3][0].decode(),
            "data": {k: base64.b64encode(v).decode() for k, v in _map(value.get(2, [])).items()}}
