"""Messages of a response on their way through redaction: documents, streams and everything else."""

import pytest
from starlette.types import Message

from five.services.controller.http.redaction import RedactingSend

URL, SHOWN = b"redis://user:secret@host:1/p?key=secret", b"redis://***@host:1/p?***"


async def forward(*messages: Message) -> list[Message]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    redacting = RedactingSend(send)
    for message in messages:
        await redacting(message)
    return sent


def start(kind: bytes, length: int | None = None, name: bytes = b"content-type") -> Message:
    headers = [(b"etag", b"a"), (name, kind)] + ([] if length is None else [(b"Content-Length", b"%d" % length)])
    return {"type": "http.response.start", "status": 201, "headers": headers}


def body(text: bytes, more: bool = False) -> Message:
    return {"type": "http.response.body", "body": text, "more_body": more}


@pytest.mark.parametrize("kind", [b"application/json", b"application/problem+json", b"application/json; charset=utf-8"])
async def test_document_is_redacted_with_its_length(kind: bytes) -> None:
    """A URL may be split between two messages."""
    document = b'{"url": "%s"}' % URL
    name = b"Content-Type"
    sent = await forward(start(kind, len(document), name), body(document[:20], True), body(document[20:]))
    expected = b'{"url": "%s"}' % SHOWN
    assert sent == [start(kind, len(expected), name), {"type": "http.response.body", "body": expected}]


async def test_document_without_a_url_is_unchanged() -> None:
    document = b'{"name": "\xc3\xa4\xff", "at": "user:secret@host"}'
    sent = await forward(start(b"application/json", len(document)), body(document[:9], True), body(document[9:], True),
                         {"type": "http.response.body"})
    assert sent == [start(b"application/json", len(document)), {"type": "http.response.body", "body": document}]


async def test_bytes_that_are_no_text_stay() -> None:
    sent = await forward(start(b"application/json"), body(b"\xff " + URL))
    assert sent[1]["body"] == b"\xff " + SHOWN


async def test_events_are_sent_at_once() -> None:
    kind = b"text/event-stream; charset=utf-8"
    sent = await forward(start(kind), body(b"data: " + URL + b"\n\n", True), {"type": "http.response.body"},
                         body(b"data: x", True))
    assert sent == [start(kind), body(b"data: " + SHOWN + b"\n\n", True), {"type": "http.response.body", "body": b""},
                    body(b"data: x", True)]


@pytest.mark.parametrize("first", [start(b"application/octet-stream", 3), start(b"text/plain"),
                                   {"type": "http.response.start", "status": 204}])
async def test_other_responses_are_unchanged(first: Message) -> None:
    messages = [first, body(URL, True), body(URL)]
    assert await forward(*messages) == messages


async def test_other_messages_pass_before_the_document() -> None:
    debug: Message = {"type": "http.response.debug"}
    trailers: Message = {"type": "http.response.trailers"}
    sent = await forward(debug, start(b"application/json"), trailers, body(b"{}"))
    assert sent == [debug, trailers, start(b"application/json"), {"type": "http.response.body", "body": b"{}"}]
