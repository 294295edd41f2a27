"""Errors of the real client."""


class ClientUnavailable(RuntimeError):
    """The installation, the bots' folder or a port cannot be used. The message says what to change."""


class ClientFailed(RuntimeError):
    """A started client ended, fell silent or lost its sockets before the game's end."""
