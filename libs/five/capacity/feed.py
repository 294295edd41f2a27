"""Distribution of the rollouts' segments to the optimizers."""

import functools

from five.services.rollout.optimizer_assignment import assigned_ranks

PARTS = 100  # of an optimizer's feed


@functools.cache
def worst_feed(rollouts: int, optimizers: int, per_process: int) -> float:
    """Return the segments of the optimizer that receives the fewest, relative to the mean; 0 if one has no sender.

    All rollouts are equally fast. As acknowledgements make them, they send to the one of their optimizers that has
    received the fewest.
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
