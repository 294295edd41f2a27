"""Learning holds while the version before the next one cannot be written."""

import logging
import time

from five.services.optimizer import metrics as page

log = logging.getLogger(__name__)

TOLD_AFTER_SECONDS = 5.0  # of holding, the log has it


class Holding:
    """Why learning holds, and for how long it has: on the metrics' page, and in the log where it takes long."""

    def __init__(self) -> None:
        self.why = ""  # '' while learning goes on
        self._since = 0.0
        self._told = False

    def hold(self, why: str) -> None:
        """Learning holds now; said again each time that it still does."""
        now = time.monotonic()
        if not self.why:
            self._since = now
        self.why = why
        page.HOLDING.set(now - self._since)
        if now - self._since > TOLD_AFTER_SECONDS and not self._told:
            self._told = True
            log.warning("learning is on hold: %s", why)

    def go_on(self) -> None:
        """Learning does not hold, or no longer."""
        if self._told:
            log.info("learning continues")
        self.why, self._told = "", False
        page.HOLDING.set(0.0)
