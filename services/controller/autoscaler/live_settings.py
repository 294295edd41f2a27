"""The autoscaler's settings, reloaded when their file changes."""

import logging
from collections.abc import Sequence
from pathlib import Path

from five.run.config.autoscaler import AutoscalerConfig
from five.run.load import ConfigError, load
from rapid.file_stamp import FileStamp, file_stamp

log = logging.getLogger(__name__)
# These keys are read once, at the start. A change of any other key needs no restart (tools/config_reads.py).
FIXED_KEYS = ("enabled", "timeout_seconds")


class LiveSettings:
    """``services.controller.autoscaler`` of the configuration file ``source`` with the command line's ``overrides``.

    ``started`` is in force until the file changes; the keys in FIXED_KEYS keep its values.
    """

    def __init__(self, source: str, overrides: Sequence[str], started: AutoscalerConfig) -> None:
        self._path = Path(source)
        self._overrides = tuple(overrides)
        self._started = started
        self._now = started
        self._stamp = self._read_stamp()
        self._reported_error = ""

    def _read_stamp(self) -> FileStamp | None:
        try:
            return file_stamp(self._path)
        except OSError:
            return None  # a preset's name, or a file that is being replaced

    def read(self) -> AutoscalerConfig:
        """Return the settings in force. An invalid file is logged once and changes nothing."""
        seen = self._read_stamp()
        if seen is None or seen == self._stamp:
            return self._now
        try:
            found = load(self._path, self._overrides).services.controller.autoscaler
        except (ConfigError, OSError) as error:
            if str(error) != self._reported_error:
                self._reported_error = str(error)
                log.warning("autoscaler settings are invalid, keeping the previous ones: %s", error)
            return self._now
        self._stamp, self._reported_error = seen, ""
        found = found.model_copy(update={name: getattr(self._started, name) for name in FIXED_KEYS})
        if found != self._now:
            log.info("autoscaler settings reloaded: rollout %d to %d, inference %d to %d pods",
                     found.rollout.min, found.rollout.max, found.inference.min, found.inference.max)
        self._now = found
        return found
