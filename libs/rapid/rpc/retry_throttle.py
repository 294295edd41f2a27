"""How often calls may be tried again: not at all while most of them fail (gRPC's retry throttling, gRFC A6).

Servers that are overloaded or away are not helped by each client asking several times. A call that fails for want of a
server costs a token, one that is answered gives a tenth of one back, and only with more than half of its tokens does a
client try again. The first try of each call is always made.
"""

TOKENS = 10.0
TOKEN_RATIO = 0.1


class RetryThrottle:
    """Of one client of one service."""

    def __init__(self, tokens: float = TOKENS, given_back: float = TOKEN_RATIO) -> None:
        self._most = self._tokens = tokens
        self._given_back = given_back

    def answered(self) -> None:
        """A call was answered, whatever the answer."""
        self._tokens = min(self._tokens + self._given_back, self._most)

    def failed(self) -> None:
        """A call has found no server, or none that could answer."""
        self._tokens = max(self._tokens - 1, 0.0)

    @property
    def allows(self) -> bool:
        """Whether a call that has just failed may be tried again."""
        return self._tokens > self._most / 2
