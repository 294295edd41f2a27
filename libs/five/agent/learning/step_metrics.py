"""Metrics of a gradient step, which stay on the device until they are read."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor

log = logging.getLogger(__name__)


class DeviceEvent:
    """A point in a device's work: a CUDA event in the current stream, or the present time on a CPU."""

    def __init__(self, device: torch.device) -> None:
        self._event: torch.cuda.Event | None = None
        self._time = time.perf_counter()
        if device.type == "cuda":
            self._event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
            self._event.record(torch.cuda.current_stream(device))

    @property
    def is_done(self) -> bool:
        """Whether the device has reached the event."""
        return self._event is None or bool(self._event.query())  # type: ignore[no-untyped-call]

    def wait(self) -> None:
        """Wait until the device has reached the event."""
        if self._event is not None:
            self._event.synchronize()

    def seconds_since(self, earlier: "DeviceEvent") -> float:
        """Return the seconds of device time from an earlier event. Wait for both."""
        if self._event is None or earlier._event is None:
            return self._time - earlier._time
        self.wait()
        return float(earlier._event.elapsed_time(self._event)) / 1e3


class StepMetrics(Mapping[str, float]):
    """Metrics of one gradient step by name. The first access waits for the step and fetches all of them.

    Args:
        names: names of the first values.
        values: float32 [n + m] on the device: n metrics, then m flags for ``explain_skip``.
        known: metrics that the host knows.
        start: event before the step's work.
        end: event after the step's work.
        step: number of the step, for the log.
        explain_skip: returns the reason of a skipped step from its flags. The first access logs it.
    """

    def __init__(self, names: Sequence[str], values: Tensor, known: Mapping[str, float], start: DeviceEvent,
                 end: DeviceEvent, step: int, explain_skip: Callable[[list[bool]], str]) -> None:
        self._names = list(names)
        self._values = values
        self._known = dict(known)
        self._step = step
        self._explain_skip = explain_skip
        self._fetched_values: dict[str, float] | None = None
        self.start = start
        self.end = end

    @property
    def seconds(self) -> float:
        """Seconds of device time of the step. Waits for its end."""
        return self.end.seconds_since(self.start)

    def __getitem__(self, name: str) -> float:
        return self._fetch()[name]

    def __iter__(self) -> Iterator[str]:
        return iter([*self._names, *self._known])

    def __len__(self) -> int:
        return len(self._names) + len(self._known)

    def _fetch(self) -> dict[str, float]:
        if self._fetched_values is None:
            fetched = self._values.tolist()
            self._fetched_values = dict(zip(self._names, fetched, strict=False)) | self._known
            if self._fetched_values["skipped"]:
                flags = [flag > 0 for flag in fetched[len(self._names):]]
                log.warning("gradient step %d skipped: %s", self._step, self._explain_skip(flags))
        return self._fetched_values


def explain_skip(terms: Sequence[str], parameters: Sequence[str], flags: Sequence[bool]) -> str:
    """Return why a step was skipped.

    ``flags`` tell what was finite: each loss term, the loss averaged over all optimizers, the observation moments, and
    the gradient of each parameter.
    """
    loss_fine, moments_fine = flags[len(terms)], flags[len(terms) + 1]
    if bad := [name for name, fine in zip(terms, flags, strict=False) if not fine]:
        return f"the loss is not finite: {', '.join(bad)}"
    if not loss_fine:
        return "the loss of another optimizer is not finite"
    if bad := [name for name, fine in zip(parameters, flags[len(terms) + 2:], strict=True) if not fine]:
        return f"the gradient is not finite: {', '.join(bad[:5])}"
    if not moments_fine:
        return "the observations are not finite"
    return "the gradient's norm is not finite: it overflows"
