"""Gradient all-reduce in buckets, overlapped with the backward pass (as in PyTorch's DistributedDataParallel)."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

StartAllReduce = Callable[[Tensor], Callable[[], None]]
"""Starts to average a tensor over all optimizers in place; returns a function that waits for the end (on a GPU the
current stream waits, not the host)."""


class GradientBuckets:
    """Flat gradient vector in buckets; each is averaged over the optimizers once all its parameters have a gradient.

    Every optimizer averages the buckets in the same order, last parameters first, which is about the order of the
    backward pass. A bucket that is complete early waits for those before it.

    Args:
        flat: the gradient vector. The ``grad`` of each parameter is a view of it.
        parameters: (parameter, start, end) in order, with the elements [start, end) of ``flat``.
        start_all_reduce: starts to average a part of ``flat``.
        nbytes: minimum bytes of a bucket; a parameter is never split.
    """

    def __init__(self, flat: Tensor, parameters: Sequence[tuple[torch.nn.Parameter, int, int]],
                 start_all_reduce: StartAllReduce, nbytes: int) -> None:
        self._flat = flat
        self._start_all_reduce = start_all_reduce
        self._bounds: list[tuple[int, int]] = []
        self._parameter_counts: list[int] = []
        self._missing: list[int] = []
        self._started = 0  # buckets whose all-reduce has started
        self._pending: list[Callable[[], None]] = []
        self._armed = False
        end, members = flat.numel(), 0
        for parameter, start, _ in reversed(parameters):
            hook = self._hook(len(self._bounds))
            parameter.register_post_accumulate_grad_hook(hook)  # type: ignore[no-untyped-call]
            members += 1
            if (end - start) * flat.element_size() >= nbytes or start == 0:
                self._bounds.append((start, end))
                self._parameter_counts.append(members)
                end, members = start, 0

    def __len__(self) -> int:
        return len(self._bounds)

    def prepare_for_backward(self) -> None:
        """Average the gradients of the next backward pass. Passes without this call are not averaged."""
        self._missing = list(self._parameter_counts)
        self._started = 0
        self._armed = True

    def finish_all_reduce(self) -> None:
        """Average the remaining buckets and wait for all.

        Parameters without a gradient keep their bucket from starting earlier. A backward pass without
        `prepare_for_backward`, such as a replayed one, which calls no hooks, is averaged here as a whole.
        """
        if not self._armed:
            self._started = 0
        self._armed = False
        self._start_until(len(self._bounds))
        for end in self._pending:
            end()
        self._pending.clear()

    def _hook(self, bucket: int) -> Callable[[Tensor], None]:
        def ready(_: Tensor) -> None:
            if not self._armed:
                return
            self._missing[bucket] -= 1
            complete = self._started
            while complete < len(self._missing) and self._missing[complete] <= 0:
                complete += 1
            self._start_until(complete)

        return ready

    def _start_until(self, complete: int) -> None:
        for start, end in self._bounds[self._started:complete]:
            self._pending.append(self._start_all_reduce(self._flat[start:end]))
        self._started = max(self._started, complete)
