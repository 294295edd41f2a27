"""Feed of the optimizers: how evenly the rollouts' segments reach them."""

import functools

from five.services.rollout.optimizer_assignment import assigned_ranks

PARTS = 100  # of an optimizer's feed


@functools.cache
def worst_feed(rollouts: int, optimizers: int, per_process: int) -> float:
    """Return the feed of the worst fed optimizer over the mean of all; 0 if one has no sender.

    Equally fast rollouts send small parts to the least fed of their optimizers, as acknowledgements make them.
    """
    if rollouts == 0:
        return 0.0
    assigned = [assigned_ranks(ordinal, rollouts, optimizers, per_process) for ordinal in range(rollouts)]
    fed = [0] * optimizers
    rounds = -(-PARTS * optimizers // rollouts)
    for _ in range(rounds):
        for ranks in assigned:
            fed[min(ranks, key=fed.__getitem__)] += 1
    # The mean is seldom a whole number of parts; the part on the way to the worst fed one counts.
    return min((min(fed) + 1) * optimizers / (rounds * rollouts), 1.0) if min(fed) else 0.0
