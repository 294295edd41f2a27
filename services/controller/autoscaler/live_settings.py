"""The autoscaler's settings as its file has them now: bounds change without a restart of anything."""

import logging
from collections.abc import Sequence
from pathlib import Path

from five.run.config.autoscaler import AutoscalerConfig
from five.run.load import ConfigError, load
from rapid.files import Stamp, stamp

log = logging.getLogger(__name__)
# Whether there is an autoscaler, and its client's time-out, are settled when it starts. tools/config_reads.py leaves
# the other keys out of what restarts the controller.
SETTLED = ("enabled", "timeout_seconds")


class LiveSettings:
    """``services.controller.autoscaler`` of the configuration file ``source``, with the command line's ``overrides``.

    ``started`` is what holds until the file is another one, and what SETTLED names of it always.
    """

    def __init__(self, source: str, overrides: Sequence[str], started: AutoscalerConfig) -> None:
        self._path = Path(source)
        self._overrides = tuple(overrides)
        self._started = started
        self._now = started
        self._stamp = self._look()
        self._trouble = ""

    def _look(self) -> Stamp | None:
        try:
            return stamp(self._path)
        except OSError:
            return None  # a preset's name, or a file that is being replaced

    def read(self) -> AutoscalerConfig:
        """The settings that hold now. A file that cannot be used is told of once, and changes nothing."""
        seen = self._look()
        if seen is None or seen == self._stamp:
            return self._now
        try:
            found = load(self._path, self._overrides).services.controller.autoscaler
        except (ConfigError, OSError) as error:
            if str(error) != self._trouble:
                self._trouble = str(error)
                log.warning("the autoscaler's settings stay as they were: %s", error)
            return self._now
        self._stamp, self._trouble = seen, ""
        found = found.model_copy(update={name: getattr(self._started, name) for name in SETTLED})
        if found != self._now:
            log.info("the autoscaler's settings are read again: rollout %d to %d, inference %d to %d pods",
                     found.rollout.min, found.rollout.max, found.inference.min, found.inference.max)
        self._now = found
        return found
