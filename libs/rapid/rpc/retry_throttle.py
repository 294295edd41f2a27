"""Retry throttling: no retries while most calls fail (gRFC A6).

Retries do not help overloaded or absent servers. A call that finds no server costs one token; an answered call returns
a tenth of one. A client retries only with more than half of its tokens. The first attempt of each call is always made.
"""

TOKENS = 10.0
TOKEN_RATIO = 0.1


class RetryThrottle:
    """Token bucket of one client of one service."""

    def __init__(self, tokens: float = TOKENS, given_back: float = TOKEN_RATIO) -> None:
        self._most = self._tokens = tokens
        self._given_back = given_back

    def answered(self) -> None:
        """Record a call that was answered, also with an error."""
        self._tokens = min(self._tokens + self._given_back, self._most)

    def failed(self) -> None:
        """Record a call that found no server able to answer."""
        self._tokens = max(self._tokens - 1, 0.0)

    @property
    def allows(self) -> bool:
        """Whether a call that just failed may be retried."""
        return self._tokens > self._most / 2
