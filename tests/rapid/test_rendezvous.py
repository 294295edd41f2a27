"""Rendezvous of a process group in Redis: which nodes form a round, and who makes way for whom."""

import time

import pytest
import redis

from rapid.store.rendezvous import GroupRendezvous, Round, Waiting

LEASE, PATIENCE = 0.4, 0.15


class Node:
    """Node whose first process would listen at host NAME and port 7."""

    def __init__(self, database: redis.Redis, name: str, minimum: int = 1, maximum: int = 3, group: str = "a") -> None:
        self.rendezvous = GroupRendezvous(database, "r", group, name, minimum, maximum, LEASE, PATIENCE)
        self.name = name
        self.rendezvous.begin()

    def join(self) -> Round | Waiting:
        return self.rendezvous.join(self.name, 7)

    def round(self) -> Round:
        found = self.join()
        assert isinstance(found, Round), found
        return found


def nodes(database: redis.Redis, *names: str, minimum: int = 1, maximum: int = 3) -> list[Node]:
    return [Node(database, name, minimum, maximum) for name in names]


def complete(*members: Node) -> None:
    for member in members:
        member.join()
    for member in members:
        member.round()


def test_round_is_complete_with_all_nodes_in_order(database: redis.Redis) -> None:
    second, tenth, first = nodes(database, "five-1", "five-10", "five-0")
    assert second.join() == Waiting(1, ()) and tenth.join() == Waiting(2, ())
    expected = Round(1, ("five-0", "five-1", "five-10"), "five-0", 7)
    assert first.join() == expected == second.join() == tenth.join() == tenth.join()
    assert first.rendezvous.beat() == 0


def test_fewer_nodes_begin_after_the_time_of_patience(database: redis.Redis) -> None:
    (alone,) = nodes(database, "b")
    assert alone.join() == Waiting(1, ())
    time.sleep(PATIENCE + 0.02)
    assert alone.round().nodes == ("b",)
    (short,) = nodes(database, "c", minimum=2)
    assert short.join() == Waiting(1, ("b",))


def test_group_goes_on_without_its_first_node(database: redis.Redis) -> None:
    a, b, c = nodes(database, "a", "b", "c")
    complete(a, b, c)
    for survivor in (b, c):
        survivor.rendezvous.begin()
    assert b.join()[0] == 1
    assert c.join() == Waiting(2, ("a",)), "the lost node's lease has not expired"
    end = time.monotonic() + 5
    found: Round | Waiting = Waiting(0, ())
    while not isinstance(found, Round) and time.monotonic() < end:
        found = b.join()
        assert isinstance(c.join(), Round) or isinstance(found, Waiting)
        time.sleep(0.02)
    assert found == Round(2, ("b", "c"), "b", 7) == c.join()


def test_members_at_work_are_waited_for(database: redis.Redis) -> None:
    a, b = nodes(database, "a", "b", maximum=2)
    complete(a, b)
    a.rendezvous.begin()
    for _ in range(4):
        assert a.join() == Waiting(1, ("b",))
        assert b.rendezvous.beat() == 1, "the other member came back and needs this one"
        time.sleep(PATIENCE)
    b.rendezvous.begin()
    assert b.round().number == 2


def test_restarted_node_replaces_itself(database: redis.Redis) -> None:
    a, b = nodes(database, "a", "b", maximum=2)
    complete(a, b)
    again = Node(database, "b", maximum=2)
    assert again.join() == Waiting(1, ("a",)) and a.rendezvous.beat() == 1
    a.rendezvous.begin()
    assert a.round().number == 2 and again.round().number == 2
    assert b.rendezvous.beat() == 1, "its former self is in no round"


def test_full_group_makes_way_for_nobody_else(database: redis.Redis) -> None:
    a, b = nodes(database, "a", "b", maximum=2)
    complete(a, b)
    (third,) = nodes(database, "c", maximum=2)
    assert third.join()[0] == 1
    assert a.rendezvous.beat() == 0 == b.rendezvous.beat()


def test_group_below_its_maximum_makes_way(database: redis.Redis) -> None:
    (a,) = nodes(database, "a")
    a.join()
    time.sleep(PATIENCE + 0.02)
    a.round()
    (b,) = nodes(database, "b")
    b.join()
    assert a.rendezvous.beat() == 1
    time.sleep(LEASE + 0.02)  # it stopped calling
    assert a.rendezvous.beat() == 0


def test_node_that_leaves_is_not_waited_for(database: redis.Redis) -> None:
    a, b = nodes(database, "a", "b", maximum=2)
    complete(a, b)
    a.rendezvous.begin()
    assert a.join() == Waiting(1, ("b",))
    b.rendezvous.leave()
    assert a.join() == Waiting(1, ())
    time.sleep(PATIENCE + 0.02)
    assert a.round().nodes == ("a",)


def test_groups_do_not_meet(database: redis.Redis) -> None:
    old, new = Node(database, "a", maximum=2, group="old"), Node(database, "b", maximum=2, group="new")
    assert old.join() == Waiting(1, ()) and new.join() == Waiting(1, ())


@pytest.mark.parametrize(("minimum", "maximum"), [(0, 2), (3, 2)])
def test_invalid_sizes_are_refused(database: redis.Redis, minimum: int, maximum: int) -> None:
    with pytest.raises(ValueError, match=f"nodes {minimum}:{maximum}"):
        Node(database, "a", minimum, maximum)
