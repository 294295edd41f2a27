"""Redaction of responses: no route shows user, password or query of a URL, whatever an older release has stored."""

from starlette.types import Message, Send

from rapid.redaction import redact

JSON, EVENT_STREAM = b"json", b"text/event-stream"


class RedactingSend:
    """Forwards response messages, with redacted JSON documents and event streams."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None  # of a document whose length is not known yet
        self._body: list[bytes] = []
        self._is_stream = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            kind = next((value for name, value in message.get("headers", ()) if name.lower() == b"content-type"), b"")
            self._is_stream = kind.startswith(EVENT_STREAM)
            if JSON in kind:
                self._start = message
                return
        elif message["type"] == "http.response.body":
            if self._is_stream:
                message = {**message, "body": _redact(message.get("body", b""))}
            elif self._start is not None:
                self._body.append(message.get("body", b""))
                if not message.get("more_body", False):
                    await self._send_document()
                return
        await self._send(message)

    async def _send_document(self) -> None:
        assert self._start is not None
        body = _redact(b"".join(self._body))
        headers = [(name, b"%d" % len(body) if name.lower() == b"content-length" else value)
                   for name, value in self._start["headers"]]
        await self._send({**self._start, "headers": headers})
        self._start = None
        await self._send({"type": "http.response.body", "body": body})


def _redact(body: bytes) -> bytes:
    return redact(body.decode(errors="surrogateescape")).encode(errors="surrogateescape") if b"://" in body else body
