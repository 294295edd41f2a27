"""The autoscaler's settings as its file has them now: bounds change without a restart of anything."""

import logging
from collections.abc import Sequence
from pathlib import Path

from five.run.config.autoscaler import AutoscalerConfig
from five.run.load import ConfigError, load
from rapid.file_stamp import Stamp, stamp

log = logging.getLogger(__name__)
# Whether there is an autoscaler, and its client's time-out, are settled when it starts. tools/config_reads.py leaves
# the other keys out of what restarts the controller.
FIXED_KEYS = ("enabled", "timeout_seconds")


class LiveSettings:
    """``services.controller.autoscaler`` of the configuration file ``source``, with the command line's ``overrides``.

    ``started`` is what holds until the file is another one, and what FIXED_KEYS names of it always.
    """

    def __init__(self, source: str, overrides: Sequence[str], started: AutoscalerConfig) -> None:
        self._path = Path(source)
        self._overrides = tuple(overrides)
        self._started = started
        self._now = started
        self._stamp = self._look()
        self._report_error = ""

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
            if str(error) != self._report_error:
                self._report_error = str(error)
                log.warning("the autoscaler's settings stay as they were: %s", error)
            return self._now
        self._stamp, self._report_error = seen, ""
        found = found.model_copy(update={name: getattr(self._started, name) for name in FIXED_KEYS})
        if found != self._now:
            log.info("the autoscaler's settings are read again: rollout %d to %d, inference %d to %d pods",
                     found.rollout.min, found.rollout.max, found.inference.min, found.inference.max)
        self._now = found
        return found
