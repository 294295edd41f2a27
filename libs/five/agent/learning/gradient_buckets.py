"""Gradients averaged over the optimizers while backward goes on, bucket by bucket."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

StartAllReduce = Callable[[Tensor], Callable[[], None]]
"""Begins to average a tensor over all optimizers in place; what it returns ends that (on a GPU: the present stream
waits, not the host)."""


class GradientBuckets:
    """One flat gradient vector, cut into buckets that are averaged as soon as all of their parameters have theirs.

    Every optimizer averages the buckets in the same order, that of the last parameters first, which is about the order
    in which backward gets to them; one that is complete early waits for those before it.

    Args:
        flat: the gradient vector; ``parameters`` have their ``grad`` in it.
        parameters: each with the elements [start, end) of ``flat`` that are its own, in their order.
        begin: begins to average a part of ``flat``.
        nbytes: bytes of a bucket, at least; a parameter is never cut.
    """

    def __init__(self, flat: Tensor, parameters: Sequence[tuple[torch.nn.Parameter, int, int]], begin: StartAllReduce,
                 nbytes: int) -> None:
        self._flat = flat
        self._begin = begin
        self._bounds: list[tuple[int, int]] = []
        self._sizes: list[int] = []
        self._missing: list[int] = []
        self._complete = 0  # buckets begun
        self._under_way: list[Callable[[], None]] = []
        self._armed = False
        end, members = flat.numel(), 0
        for parameter, start, _ in reversed(parameters):
            hook = self._hook(len(self._bounds))
            parameter.register_post_accumulate_grad_hook(hook)  # type: ignore[no-untyped-call]
            members += 1
            if (end - start) * flat.element_size() >= nbytes or start == 0:
                self._bounds.append((start, end))
                self._sizes.append(members)
                end, members = start, 0

    def __len__(self) -> int:
        return len(self._bounds)

    def arm(self) -> None:
        """The backward pass that follows is averaged; without it nothing is."""
        self._missing = list(self._sizes)
        self._complete = 0
        self._armed = True

    def finish(self) -> None:
        """Averages what is left, parameters without a gradient among it, and ends all that is under way. What is left
        of a backward pass for which there was no `arm` is all of it: one that was replayed calls no hooks."""
        if not self._armed:
            self._complete = 0
        self._armed = False
        self._begin_until(len(self._bounds))
        for end in self._under_way:
            end()
        self._under_way.clear()

    def _hook(self, bucket: int) -> Callable[[Tensor], None]:
        def ready(_: Tensor) -> None:
            if not self._armed:
                return
            self._missing[bucket] -= 1
            complete = self._complete
            while complete < len(self._missing) and self._missing[complete] <= 0:
                complete += 1
            self._begin_until(complete)

        return ready

    def _begin_until(self, complete: int) -> None:
        for start, end in self._bounds[self._complete:complete]:
            self._under_way.append(self._begin(self._flat[start:end]))
        self._complete = max(self._complete, complete)
