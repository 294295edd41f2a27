"""Rendezvous of a process group in Redis: which nodes form a round, and who makes way for whom."""

import json
import time
from typing import Any

import pytest
import redis

from rapid.store import functions
from rapid.store.keys import Keys
from rapid.store.rendezvous import GroupRendezvous, Round, Waiting

LEASE, PATIENCE = 60.0, 20.0  # seconds, which `pass_time` simulates


class Node:
    """Node whose first process would listen at host NAME and ``port``."""

    def __init__(self, database: redis.Redis, name: str, minimum: int = 1, maximum: int = 3, group: str = "a",
                 port: int = 7, patience: float = PATIENCE) -> None:
        self.rendezvous = GroupRendezvous(database, "r", group, name, minimum, maximum, LEASE, patience)
        self.name = name
        self.port = port
        self.rendezvous.begin()

    def join(self) -> Round | Waiting:
        return self.rendezvous.join(self.name, self.port)

    def round(self) -> Round:
        found = self.join()
        assert isinstance(found, Round), found
        return found


def pass_time(database: redis.Redis, seconds: float) -> None:
    """Move the times that the group has stored into the past."""
    key = Keys("r").rendezvous("a")
    group = json.loads(database.get(key))  # type: ignore[arg-type]
    group["changed"] -= int(seconds * 1000)
    for node in (*group["members"].values(), *group["waiting"].values()):
        node["beat"] -= int(seconds * 1000)
    database.set(key, json.dumps(group), keepttl=True)


def nodes(database: redis.Redis, *names: str, minimum: int = 1, maximum: int = 3) -> list[Node]:
    return [Node(database, name, minimum, maximum) for name in names]


def complete(*members: Node) -> None:
    for member in members:
        member.join()
    for member in members:
        member.round()


def test_round_is_complete_with_all_nodes_in_order(database: redis.Redis) -> None:
    """Names are in the order of the ordinals at their end, and the address is the first node's."""
    second, tenth, first = (Node(database, f"five-{i}", port=port) for port, i in enumerate((2, 10, 1)))
    assert second.join() == Waiting(1, ()) and tenth.join() == Waiting(2, ())
    expected = Round(1, ("five-1", "five-2", "five-10"), "five-1", 2)
    assert first.join() == expected == second.join() == tenth.join() == tenth.join()
    assert first.rendezvous.beat() == 0


def test_fewer_nodes_begin_after_the_time_of_patience(database: redis.Redis) -> None:
    (alone,) = nodes(database, "b")
    assert alone.join() == Waiting(1, ())
    pass_time(database, PATIENCE)
    assert alone.round().nodes == ("b",)
    (short,) = nodes(database, "c", minimum=2)
    assert short.join() == Waiting(1, ("b",))


def test_group_goes_on_without_its_first_node(database: redis.Redis) -> None:
    a, b, c = nodes(database, "a", "b", "c")
    complete(a, b, c)
    for survivor in (b, c):
        survivor.rendezvous.begin()
    assert b.join()[0] == 1
    for _ in range(2):
        assert c.join() == Waiting(2, ("a",)) == b.join(), "the lost node's lease has not expired"
        pass_time(database, LEASE / 2)
    assert b.join() == Round(2, ("b", "c"), "b", 7) == c.join()


def test_members_at_work_are_waited_for(database: redis.Redis) -> None:
    a, b = nodes(database, "a", "b", maximum=2)
    complete(a, b)
    a.rendezvous.begin()
    for _ in range(4):
        assert a.join() == Waiting(1, ("b",))
        assert b.rendezvous.beat() == 1, "the other member came back and needs this one"
        pass_time(database, PATIENCE)
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
    pass_time(database, PATIENCE)
    a.round()
    (b,) = nodes(database, "b")
    b.join()
    assert a.rendezvous.beat() == 1
    pass_time(database, LEASE)  # it stopped calling
    assert a.rendezvous.beat() == 0


def test_node_that_leaves_is_not_waited_for(database: redis.Redis) -> None:
    a, b = nodes(database, "a", "b", maximum=2)
    complete(a, b)
    a.rendezvous.begin()
    assert a.join() == Waiting(1, ("b",))
    b.rendezvous.leave()
    assert a.join() == Waiting(1, ())
    pass_time(database, PATIENCE)
    assert a.round().nodes == ("a",)


def test_node_that_stops_waiting_is_not_counted(database: redis.Redis) -> None:
    a, b = nodes(database, "a", "b")
    assert a.join() == Waiting(1, ())
    a.rendezvous.leave()
    assert b.join() == Waiting(1, ())


def test_fewer_than_the_minimum_never_begin(database: redis.Redis) -> None:
    a, b = (Node(database, name, minimum=2, patience=0.0) for name in "ab")
    assert a.join() == Waiting(1, ()) == a.join()
    assert b.round().nodes == ("a", "b") == a.round().nodes


def test_each_newcomer_that_waits_is_counted(database: redis.Redis) -> None:
    a, b, c = (Node(database, name, maximum=4, patience=0.0) for name in "abc")
    assert a.round().nodes == ("a",) and a.rendezvous.beat() == 0
    for number, newcomer in enumerate((b, c), 1):
        assert newcomer.join() == Waiting(number, ("a",))
        assert a.rendezvous.beat() == number


def test_round_takes_the_maximum_and_the_rest_waits(database: redis.Redis) -> None:
    a, b = nodes(database, "a", "b", maximum=2)
    complete(a, b)
    c, d, e = nodes(database, "c", "d", "e", maximum=2)
    for number, newcomer in enumerate((e, d, c), 1):
        found = newcomer.join()
        assert isinstance(found, Waiting) and found.nodes == number and set(found.working) == {"a", "b"}
    for member in (a, b):
        member.rendezvous.leave()
    assert e.join() == Waiting(1, ("c", "d")), "the round is full without this node"
    assert c.join() == d.join() == Round(2, ("c", "d"), "c", 7) and e.join() == Waiting(1, ("c", "d"))
    for member in (c, d):
        member.rendezvous.leave()
    assert e.join() == Waiting(1, ()), "the time of patience begins with the last round"


def test_former_self_of_a_node_removes_neither_its_wait_nor_its_place(database: redis.Redis) -> None:
    a, old = nodes(database, "a", "b", maximum=2)
    complete(a, old)
    new = Node(database, "b", maximum=2)
    assert new.join() == Waiting(1, ("a",))
    old.rendezvous.leave()
    assert a.rendezvous.beat() == 1, "the new one still waits"
    a.rendezvous.begin()
    complete(a, new)
    old.rendezvous.leave()
    assert new.rendezvous.beat() == a.rendezvous.beat() == 0 and new.round().number == 2
    a.rendezvous.leave()
    assert a.rendezvous.beat() == 1, "a node without a round makes way"


def test_newcomer_begins_the_time_of_patience_again(database: redis.Redis) -> None:
    """Otherwise a third node that starts a little later needs another round."""
    a, b = nodes(database, "a", "b")
    a.join()
    pass_time(database, PATIENCE)
    assert b.join() == Waiting(2, ()) == a.join()


def test_group_is_forgotten_a_day_after_its_last_call(database: redis.Redis) -> None:
    a, b = nodes(database, "a", "b", maximum=2)
    day = 24 * 3600
    for call in (a.join, b.join, a.rendezvous.beat, a.rendezvous.leave):
        database.persist(Keys("r").rendezvous("a"))
        before = time.time()
        call()
        expiry: Any = database.pexpiretime(Keys("r").rendezvous("a"))
        assert before + day <= expiry / 1000 + 0.001 and expiry / 1000 <= time.time() + day


def test_durations_are_sent_in_milliseconds(database: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, ...]] = []

    def call(client: redis.Redis, function: str, keys: list[str], *arguments: str) -> bytes:
        sent.append(arguments)
        return b'{"waiting": 1, "working": []}' if arguments[0] == "join" else b"0"

    monkeypatch.setattr(functions, "call", call)
    node = GroupRendezvous(database, "r", "a", "n", 1, 2, 1.5, 2.5)
    node.begin()
    node.beat()
    node.join("host", 7)
    assert [arguments[3] for arguments in sent] == ["1500", "1500"] and sent[1][-1] == "2500"


def test_groups_do_not_meet(database: redis.Redis) -> None:
    old, new = Node(database, "a", maximum=2, group="old"), Node(database, "b", maximum=2, group="new")
    assert old.join() == Waiting(1, ()) and new.join() == Waiting(1, ())


@pytest.mark.parametrize(("minimum", "maximum"), [(1, 1), (1, 2), (2, 2), (2, 3)])
def test_minimum_is_at_most_the_maximum(database: redis.Redis, minimum: int, maximum: int) -> None:
    members = nodes(database, *"abc"[:maximum], minimum=minimum, maximum=maximum)
    complete(*members)
    assert len(members[0].round().nodes) == maximum


@pytest.mark.parametrize(("minimum", "maximum"), [(0, 2), (-1, 2), (3, 2), (2, 1), (0, 0)])
def test_invalid_sizes_are_refused(database: redis.Redis, minimum: int, maximum: int) -> None:
    with pytest.raises(ValueError, match=f"nodes {minimum}:{maximum}"):
        Node(database, "a", minimum, maximum)
