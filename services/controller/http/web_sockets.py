"""The web-socket protocol of the REST server."""

from contextlib import suppress

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """uvicorn's protocol, for clients that break the rules and leave at once.

    uvicorn closes a connection over a text that is not UTF-8. If the client's own close came in the same packet, the
    connection is closing already, and that raises an exception in the event loop.
    """

    def send_receive_event_to_app(self) -> None:
        """Hand a complete message to the application. One that is not UTF-8 closes the connection."""
        with suppress(InvalidState):
            super().send_receive_event_to_app()
