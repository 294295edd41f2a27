"""What a gradient step says of itself, kept on its device until somebody asks."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor

log = logging.getLogger(__name__)


class DeviceEvent:
    """A point in a device's work: on a GPU an event in its present stream, else the time."""

    def __init__(self, device: torch.device) -> None:
        self._event: torch.cuda.Event | None = None
        self._time = time.perf_counter()
        if device.type == "cuda":
            self._event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
            self._event.record(torch.cuda.current_stream(device))

    @property
    def passed(self) -> bool:
        """Whether the device has come to it."""
        return self._event is None or bool(self._event.query())  # type: ignore[no-untyped-call]

    def wait(self) -> None:
        """Waits until the device has come to it."""
        if self._event is not None:
            self._event.synchronize()

    def since(self, earlier: "DeviceEvent") -> float:
        """Seconds of the device's time from an earlier one; waits for both."""
        if self._event is None or earlier._event is None:
            return self._time - earlier._time
        self.wait()
        return float(earlier._event.elapsed_time(self._event)) / 1e3


class StepMetrics(Mapping[str, float]):
    """Numbers of one gradient step by name. The first look at any of them waits for the step and fetches all.

    ``values`` float32 [n + m] on the device: those of ``names``, then m flags that only ``why`` reads; ``known``: what
    the host knew. ``began``, ``ended``: of the step's work. A step that was skipped (``skipped`` is 1) is logged when
    it is looked at, with ``why``'s reason for its flags.
    """

    def __init__(self, names: Sequence[str], values: Tensor, known: Mapping[str, float], began: DeviceEvent, ended: DeviceEvent,
                 step: int, why: Callable[[list[bool]], str]) -> None:
        self._names = list(names)
        self._values = values
        self._known = dict(known)
        self._step = step
        self._why = why
        self._read: dict[str, float] | None = None
        self.began = began
        self.ended = ended

    @property
    def seconds(self) -> float:
        """How long the device worked on the step; waits for it."""
        return self.ended.since(self.began)

    def __getitem__(self, name: str) -> float:
        return self._fetched()[name]

    def __iter__(self) -> Iterator[str]:
        return iter([*self._names, *self._known])

    def __len__(self) -> int:
        return len(self._names) + len(self._known)

    def _fetched(self) -> dict[str, float]:
        if self._read is None:
            fetched = self._values.tolist()
            self._read = dict(zip(self._names, fetched, strict=False)) | self._known
            if self._read["skipped"]:
                flags = [flag > 0 for flag in fetched[len(self._names):]]
                log.warning("gradient step %d skipped: %s", self._step, self._why(flags))
        return self._read


def explain_skip(terms: Sequence[str], parameters: Sequence[str], flags: Sequence[bool]) -> str:
    """Why a step was skipped. ``flags`` say what of it was finite: the loss's terms, their sum over all optimizers, the
    observations' moments, the gradient of each parameter."""
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
