"""Which epoch of the run a service lives in. The one place that asks."""

from typing import Any

FIRST = 1  # of a run that was just made


def epoch_of(service: Any) -> int:
    """The epoch that the service came up in; it renews itself when the run's moves."""
    epoch: int = getattr(service, "epoch", FIRST)
    return epoch
