"""Drawing one of many by the softmax of their qualities, at a cost that grows with the logarithm of their number."""

import math
from collections.abc import Iterable

_LEAST_TOTAL = 1e-3


class SoftmaxDraw:
    """Keys with qualities, in order of addition, in a binary tree of the sums of exp(quality).

    A sum is always made of its two parts again, so that no rounding error grows, whatever was changed before.
    """

    def __init__(self, qualities: Iterable[tuple[int, float]] = ()) -> None:
        self._qualities: dict[int, float] = {}
        self._build(dict(qualities))

    def __len__(self) -> int:
        return len(self._qualities)

    def put(self, key: int, quality: float) -> None:
        """Adds a key, or changes its quality."""
        fresh = key not in self._qualities
        self._qualities[key] = quality
        if quality > self._reference or (fresh and len(self._keys) == self._size):
            self._build(self._qualities)
            return
        if fresh:
            self._place[key] = len(self._keys)
            self._keys.append(key)
        self._set(self._place[key], math.exp(quality - self._reference))
        # Weights that all became small would lose the smallest of them to underflow.
        if self._sums[1] < _LEAST_TOTAL:
            self._build(self._qualities)

    def remove(self, key: int) -> None:
        """Takes a key out, if it is there."""
        if self._qualities.pop(key, None) is not None:
            self._build(self._qualities)

    def chance(self, key: int) -> float:
        """The chance of a key to be drawn. Raises KeyError for one that is not there."""
        return self._sums[self._size + self._place[key]] / self._sums[1]

    def draw(self, uniform: float) -> int:
        """The key that a number in [0, 1) falls upon. Raises LookupError when there is none."""
        if not self._keys:
            raise LookupError("there is nothing to draw from")
        left, at = uniform * self._sums[1], 1
        while at < self._size:
            at *= 2
            # Rounding may leave more than there is: an empty half is never entered.
            if left >= self._sums[at] and self._sums[at + 1] > 0:
                left -= self._sums[at]
                at += 1
        return self._keys[at - self._size]

    def _build(self, qualities: dict[int, float]) -> None:
        self._qualities = qualities
        self._keys = list(qualities)
        self._place = {key: i for i, key in enumerate(self._keys)}
        self._reference = max(qualities.values(), default=-math.inf)
        self._size = 1 << (2 * len(self._keys)).bit_length()
        self._sums = [0.0] * (2 * self._size)
        for i, quality in enumerate(qualities.values()):
            self._sums[self._size + i] = math.exp(quality - self._reference)
        for at in range(self._size - 1, 0, -1):
            self._sums[at] = self._sums[2 * at] + self._sums[2 * at + 1]

    def _set(self, place: int, weight: float) -> None:
        at = self._size + place
        self._sums[at] = weight
        while at > 1:
            at //= 2
            self._sums[at] = self._sums[2 * at] + self._sums[2 * at + 1]
