"""Retry throttling: no retries while most calls fail (gRFC A6).

Retries do not help overloaded or absent servers. A call that reaches no server removes one token; an answered call adds
a tenth of one. A client retries only while it has more than half of its tokens. Each call is attempted at least once.
"""

TOKENS = 10.0
TOKEN_RATIO = 0.1


class RetryThrottle:
    """Token bucket of one client of one service."""

    def __init__(self, max_tokens: float = TOKENS, token_ratio: float = TOKEN_RATIO) -> None:
        self._max_tokens = self._tokens = max_tokens
        self._token_ratio = token_ratio

    def answered(self) -> None:
        """Record a call that a server answered, also with an error."""
        self._tokens = min(self._tokens + self._token_ratio, self._max_tokens)

    def failed(self) -> None:
        """Record a call that no server could answer."""
        self._tokens = max(self._tokens - 1, 0.0)

    @property
    def allows(self) -> bool:
        """Whether a call that just failed may be retried."""
        return self._tokens > self._max_tokens / 2
