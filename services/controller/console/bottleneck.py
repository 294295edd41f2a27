"""The bottleneck of a run as text, for the console and the live view of `five train`."""

from collections.abc import Sequence
from typing import Any

from rapid.store.leases import Instance


def bottleneck(live: Sequence[Instance], newest: dict[str, Any]) -> str:
    """Return the run's bottleneck as text, from its live services and its newest version's record."""
    kinds = {i.kind for i in live}
    for kind, words in (("optimizer", "no optimizer is up"), ("inference", "no inference server is up"),
                        ("rollout", "no rollout is up")):
        if kind not in kinds:
            return words
    busy = newest.get("busy_share")
    if busy is None:
        return "filling the buffer for the first version"
    if busy > 0.85:
        return f"the optimizer: it computes {100 * busy:.0f} % of the time, games wait for it"
    rollouts = [i.stats for i in live if i.kind == "rollout"]
    waits = [float(s["inference_wait_share"]) for s in rollouts if "inference_wait_share" in s]
    if waits and sum(waits) / len(waits) > 0.5:
        return f"inference: rollouts wait for it {100 * sum(waits) / len(waits):.0f} % of the time"
    return f"the games: the optimizer waits {100 * newest.get('wait_share', 0):.0f} % of the time for samples"
