"""Optimizers that each rollout sends to: every optimizer has senders, and all have equally many.

A gradient step needs a batch on every rank, so a rank without a sender stops the whole group.
"""

import functools
import logging
import random
import zlib
from collections.abc import Callable

import redis

from rapid.store.ordinals import Ordinal, Ordinals

log = logging.getLogger(__name__)


def assigned_ranks(ordinal: int, rollouts: int, optimizers: int, per_process: int) -> list[int]:
    """Return the ranks that the rollout with this ordinal sends to, each once.

    The rollouts take ``per_process`` ranks each from a sequence that repeats all ranks in a different random order each
    time. Any number of rollouts thus sends to each rank equally often, plus or minus one, and a further rollout changes
    nothing for the others. If the rollouts are too few for every rank, they share the remaining ranks evenly.
    """
    if optimizers <= per_process:
        return list(range(optimizers))
    own = range(ordinal * per_process, (ordinal + 1) * per_process)
    rollouts = max(rollouts, ordinal + 1)
    remaining = range(rollouts * per_process, optimizers)[ordinal::rollouts]
    return [_rank_order(i // optimizers, optimizers, per_process)[i % optimizers] for i in (*own, *remaining)]


@functools.lru_cache(maxsize=256)
def _rank_order(repetition: int, optimizers: int, per_process: int) -> list[int]:
    """Return the ranks in the order of one repetition. No rollout gets a rank twice where two repetitions meet."""
    order = _shuffle_ranks(repetition, optimizers)
    if repetition == 0 or optimizers % per_process == 0:
        return order  # no rollout's ranks are of two repetitions
    overlap = per_process - 1
    if optimizers < 3 * overlap:
        return _shuffle_ranks(0, optimizers)  # the same order again: any ``per_process`` ranks in a row differ
    last = set(_shuffle_ranks(repetition - 1, optimizers)[-overlap:])
    order, free = list(order), overlap
    for i in range(overlap):
        if order[i] in last:
            while order[free] in last:
                free += 1
            order[i], order[free] = order[free], order[i]
            free += 1
    return order


@functools.lru_cache(maxsize=256)
def _shuffle_ranks(repetition: int, optimizers: int) -> list[int]:
    order = list(range(optimizers))
    random.Random(f"{repetition}/{optimizers}").shuffle(order)
    return order


class OptimizerAssignment:
    """Ranks of one rollout, which follow the number of live rollouts.

    Until the rollout has an ordinal, its id selects the ranks. It has none while the state Redis does not respond, or
    refuses the call because its users are those of an earlier release.
    """

    def __init__(self, ordinals: Ordinals, identity: str, optimizers: int, per_process: int) -> None:
        self._claim: Callable[[], Ordinal] = functools.partial(ordinals.claim, identity)
        self._optimizers = optimizers
        self._per_process = per_process
        self._ordinal = Ordinal(zlib.crc32(identity.encode()), 0)
        self._warned = False

    def update(self) -> list[int]:
        """Return the ranks to send to now."""
        if self._optimizers > self._per_process:
            self._update_ordinal()
        return assigned_ranks(*self._ordinal, self._optimizers, self._per_process)

    def _update_ordinal(self) -> None:
        try:
            now = self._claim()
        except redis.RedisError as error:
            if not self._warned:
                log.warning("cannot read the rollout's ordinal, keeping the previous optimizers: %s", error)
            self._warned = True
            return
        if now.ordinal != self._ordinal.ordinal:
            log.info("optimizers assigned ordinal=%d rollouts=%d", *now)
        self._ordinal, self._warned = now, False
