"""Every optimizer gets senders, equally many, and few streams move when the number of rollouts changes."""

import itertools
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from five.capacity.feed import worst_feed
from five.services.rollout.optimizer_assignment import OptimizerAssignment, assigned_ranks
from rapid.store.leases import Lease
from rapid.store.ordinals import Ordinal, Ordinals


def senders(rollouts: int, optimizers: int, per_process: int = 8) -> list[int]:
    """Return the number of senders of each rank."""
    counts: Counter[int] = Counter()
    for ordinal in range(rollouts):
        ranks = assigned_ranks(ordinal, rollouts, optimizers, per_process)
        assert len(set(ranks)) == len(ranks)
        counts.update(ranks)
    return [counts[rank] for rank in range(optimizers)]


# docs/scale.md starts 64 optimizers with 22 rollouts and 512 with 180.
@pytest.mark.parametrize(("rollouts", "optimizers"), [
    (22, 64), (180, 512), (8, 64), (64, 512), (225, 64), (1800, 512), (3, 16), (7, 9), (50, 20), (31, 23), (1, 8),
    (40, 8), (3, 2)])
def test_every_optimizer_has_equally_many_senders(rollouts: int, optimizers: int) -> None:
    found = senders(rollouts, optimizers)
    assert min(found) >= 1 and max(found) - min(found) <= 1


@pytest.mark.parametrize(("rollouts", "optimizers"), [(1, 64), (3, 64), (7, 64), (22, 512), (63, 512)])
def test_too_few_rollouts_share_the_remaining_optimizers(rollouts: int, optimizers: int) -> None:
    assert senders(rollouts, optimizers) == [1] * optimizers
    sizes = {len(assigned_ranks(ordinal, rollouts, optimizers, 8)) for ordinal in range(rollouts)}
    assert max(sizes) - min(sizes) <= 1


def test_any_numbers_are_balanced() -> None:
    for per_process in (1, 2, 3, 5, 8):
        for optimizers in range(1, 40):
            for rollouts in (1, 2, 5, 13, 30):
                found = senders(rollouts, optimizers, per_process)
                assert min(found) >= 1 and max(found) - min(found) <= 1, (rollouts, optimizers, per_process)


@pytest.mark.parametrize(("ordinal", "rollouts"), [(0, 0), (3, 2), (3, 3), (1, 1)])
def test_rollout_counts_itself(ordinal: int, rollouts: int) -> None:
    """The number of live rollouts may lag behind, for example while all of them start."""
    assert assigned_ranks(ordinal, rollouts, 64, 8) == assigned_ranks(ordinal, ordinal + 1, 64, 8)


def test_another_rollout_moves_no_stream() -> None:
    for rollouts in (22, 100, 225):
        for ordinal in range(rollouts):
            assert assigned_ranks(ordinal, rollouts, 64, 8) == assigned_ranks(ordinal, rollouts + 1, 64, 8)


@pytest.mark.parametrize(("rollouts", "optimizers", "least"), [
    (22, 64, 0.9), (180, 512, 0.9), (8, 64, 0.95), (225, 64, 0.97), (1800, 512, 0.97), (3, 16, 0.6), (0, 64, 0.0)])
def test_worst_fed_optimizer_gets_its_share(rollouts: int, optimizers: int, least: float) -> None:
    """Optimizers learn in lockstep, so the worst fed one sets the pace."""
    assert least <= worst_feed(rollouts, optimizers, 8) <= 1


class Pods:
    """Live rollouts with leases, each of which claims its ordinal."""

    def __init__(self, client: redis.Redis) -> None:
        self._redis = client
        self.ordinals = Ordinals(client, "trial", "rollout")
        self.leases: dict[str, Lease] = {}

    def start(self, *names: str) -> None:
        for name in names:
            self.leases[name] = Lease(self._redis, "trial", "rollout", name, 60.0)
            self.leases[name].renew()

    def end(self, name: str) -> None:
        self.leases.pop(name).release()

    def claim(self) -> dict[str, Ordinal]:
        return {name: self.ordinals.claim(name) for name in self.leases}


def test_ordinals_have_no_holes_and_one_moves_for_each_that_ends(redis_client: redis.Redis) -> None:
    pods = Pods(redis_client)
    pods.start(*(f"pod-{i}" for i in "hcagebdf"))
    pods.claim()
    before = pods.claim()
    assert sorted(o.ordinal for o in before.values()) == list(range(8))
    assert {o.instances for o in before.values()} == {8}
    assert pods.claim() == before

    victim = next(name for name, o in before.items() if o.ordinal == 2)
    last = next(name for name, o in before.items() if o.ordinal == 7)
    pods.end(victim)
    pods.claim()
    after = pods.claim()
    assert after[last] == Ordinal(2, 7)
    assert {n: o.ordinal for n, o in after.items() if n != last} == {
        n: o.ordinal for n, o in before.items() if n not in (last, victim)}

    # A pod that replaces another one between two claims gets its ordinal.
    pods.end(last)
    pods.start("pod-new")
    replaced = pods.claim()
    assert replaced["pod-new"] == Ordinal(2, 7)
    assert {n: o for n, o in replaced.items() if n != "pod-new"} == {n: o for n, o in after.items() if n != last}


def test_assignment_follows_the_live_rollouts(redis_client: redis.Redis) -> None:
    pods = Pods(redis_client)
    pods.start("a")
    first = OptimizerAssignment(pods.ordinals, "a", 24, 8)
    assert sorted(first.update()) == list(range(24))  # alone it sends to all
    pods.start("b", "c")
    others = [OptimizerAssignment(pods.ordinals, name, 24, 8) for name in ("b", "c")]
    for assignment in others:
        assignment.update()
    ranks = [assignment.update() for assignment in (first, *others)]
    assert [len(r) for r in ranks] == [8, 8, 8] and sorted(itertools.chain(*ranks)) == list(range(24))
    pods.end("b")
    for assignment in (first, others[1]):
        assignment.update()
    left = [assignment.update() for assignment in (first, others[1])]
    assert sorted(itertools.chain(*left)) == list(range(24)) and set(ranks[0]) <= set(left[0])


def test_without_redis_the_previous_optimizers_stay() -> None:
    class Refused:
        def claim(self, identity: str) -> Ordinal:
            raise redis.exceptions.NoPermissionError("no permission")

    ordinals: Any = Refused()
    found = [OptimizerAssignment(ordinals, f"five-rollout-{i:x}", 64, 8) for i in range(3)]
    ranks = [assignment.update() for assignment in found]
    assert all(len(set(r)) == 8 for r in ranks) and ranks[0] != ranks[1]
    assert [assignment.update() for assignment in found] == ranks


def test_previous_ranks_stay_through_an_outage_that_is_logged_once(redis_client: redis.Redis,
                                                                   caplog: pytest.LogCaptureFixture) -> None:
    pods = Pods(redis_client)
    pods.start("a", "b", "c")
    assignment = OptimizerAssignment(pods.ordinals, "b", 24, 8)
    pods.claim()
    ranks = assignment.update()
    claim = assignment._claim

    def refuse() -> Ordinal:
        raise redis.ConnectionError("the store is down")

    for _ in range(2):  # each outage is logged, once
        caplog.clear()
        assignment._claim = refuse
        assert [assignment.update() for _ in range(3)] == [ranks] * 3
        assert len([m for m in caplog.messages if "cannot read the rollout's ordinal" in m]) == 1
        assignment._claim = claim
        assert assignment.update() == ranks


def test_no_ordinal_is_claimed_when_every_optimizer_is_sent_to() -> None:
    ordinals: Any = SimpleNamespace(claim=lambda identity: pytest.fail("claimed"))
    assert OptimizerAssignment(ordinals, "a", 8, 8).update() == list(range(8))
    assert OptimizerAssignment(ordinals, "a", 1, 8).update() == [0]


def test_ranks_of_one_rollout_differ_where_repetitions_meet() -> None:
    """Also with few optimizers, where the same order is repeated, and in the first repetition."""
    for optimizers, per_process in (*((n, 8) for n in range(9, 30)), *((n, 5) for n in range(6, 20)), (7, 2)):
        for ordinal in range(40):
            ranks = assigned_ranks(ordinal, 40, optimizers, per_process)
            assert len(set(ranks)) == len(ranks) == per_process, (optimizers, ordinal)


def test_repetitions_have_different_orders() -> None:
    """Rollouts that share one rank do not share all the others, so a lost rollout is felt by many ranks a little."""
    def groups(repetition: int, optimizers: int, per_process: int) -> set[frozenset[int]]:
        """Return the ranks of the rollouts of one repetition."""
        count = optimizers // per_process
        return {frozenset(assigned_ranks(count * repetition + i, 1000, optimizers, per_process)) for i in range(count)}

    for optimizers, per_process in ((64, 8), (63, 3), (24, 8)):
        found = set().union(*(groups(repetition, optimizers, per_process) for repetition in range(4)))
        assert len(found) == 4 * (optimizers // per_process), (optimizers, per_process)


@pytest.mark.parametrize(("optimizers", "per_process"), [(21, 8), (22, 8), (27, 8), (12, 5), (13, 5), (3, 2)])
def test_orders_differ_from_three_overlaps_on(optimizers: int, per_process: int) -> None:
    """A rollout has ranks of two repetitions here; three times the ranks that can meet suffice for a new order."""
    ranks = [rank for ordinal in range(optimizers) for rank in assigned_ranks(ordinal, optimizers, optimizers,
                                                                              per_process)]
    repetitions = [tuple(ranks[i:i + optimizers]) for i in range(0, len(ranks), optimizers)]
    assert all(sorted(order) == list(range(optimizers)) for order in repetitions), "a repetition lacks a rank"
    assert len(set(repetitions)) > 1, "every repetition has the same order"
