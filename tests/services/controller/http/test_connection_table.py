"""The table of connections: which one is closed, and which one gets answers to probes only."""

from typing import Any

import pytest

from five.run.config.controller import LimitsConfig
from five.services.controller.http.connections import ConnectionTable

PROXY = "10.0.0.1"


class Transport:
    """Transport that notes its end."""

    closed = False

    def abort(self) -> None:
        self.closed = True


class Connection:
    """The part of a connection that a table needs."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.transport = Transport()


class Table:
    """A table and every connection that was opened, by name."""

    def __init__(self, connections: int, per_address: int = 100) -> None:
        limits = LimitsConfig(connections=connections, connections_per_address=per_address)
        self.table = ConnectionTable(limits, [f"{PROXY}/32"])
        self.by_name: dict[str, Any] = {}

    def open(self, *names: str, host: str = "192.0.2.1", busy: bool = False) -> None:
        for name in names:
            self.by_name[name] = Connection(name)
            self.table.add(self.by_name[name], host)
            if busy:
                self.set_idle(name, False)

    def set_idle(self, name: str, is_idle: bool) -> None:
        self.table.set_idle(self.by_name[name], is_idle)

    def close(self, name: str) -> None:
        self.table.remove(self.by_name[name])

    def aborted(self) -> str:
        return "".join(name for name, one in self.by_name.items() if one.transport.closed)

    def excess(self) -> str:
        return "".join(name for name, one in self.by_name.items() if self.table.is_excess(one))


def test_full_table_closes_the_longest_idle() -> None:
    table = Table(3)
    table.open("a", "b", "c")
    assert len(table.table) == 3 and not table.aborted()
    table.set_idle("a", False)
    table.set_idle("a", True)  # b has now been idle for longest
    for name, aborted in (("d", "b"), ("e", "bc"), ("f", "abc")):
        table.open(name)
        assert table.aborted() == aborted and len(table.table) == 3 and not table.excess()


def test_repeated_state_does_not_change_the_order() -> None:
    table = Table(2)
    table.open("a", "b")
    table.set_idle("a", True)
    table.open("c")
    assert table.aborted() == "a"


def test_busy_connections_stay_and_new_ones_are_excess() -> None:
    table = Table(2)
    table.open("a", "b", busy=True)
    table.open("c")
    assert table.excess() == "c" and len(table.table) == 3 and not table.aborted()
    table.close("a")
    assert not table.excess(), "c is served as soon as there are two connections"


def test_connection_in_place_of_an_excess_one_is_excess() -> None:
    """Otherwise every second connection would be served, however many there are."""
    table = Table(2)
    table.open("a", "b", busy=True)
    for name, aborted in (("c", ""), ("d", "c"), ("e", "cd")):
        table.open(name)
        assert (table.excess(), table.aborted(), len(table.table)) == (name, aborted, 3)
    table.set_idle("a", True)
    table.open("f")
    assert not table.excess() and table.aborted() == "acde" and len(table.table) == 2


def test_excess_ends_with_the_connection() -> None:
    table = Table(1)
    table.open("a", "b", busy=True)
    assert table.excess() == "b"
    table.close("b")
    table.close("b")  # again: ignored
    assert not table.excess() and len(table.table) == 1
    table.set_idle("b", True)  # a closed one: ignored
    table.open("c")
    assert table.excess() == "c" and not table.aborted()


def test_address_has_its_own_limit() -> None:
    """A full address closes its own longest idle connection, whatever others do."""
    table = Table(100, per_address=2)
    table.open("o", host="192.0.2.9")
    table.open("a", "b", "x")
    assert table.aborted() == "a" and len(table.table) == 3
    for name in "bx":
        table.set_idle(name, False)
    table.set_idle("b", True)
    table.set_idle("b", False)
    table.open("c")
    assert table.aborted() == "a" and table.excess() == "c"
    table.open("p", host="192.0.2.9")
    assert table.excess() == "c" and len(table.table) == 5
    table.set_idle("x", True)
    table.set_idle("b", True)
    table.close("c")
    table.open("d")
    assert table.aborted() == "ax", "x has been idle for longer than b"


def test_connections_of_one_network_count_together() -> None:
    table = Table(100, per_address=1)
    for name, host in (("a", "2001:db8::1"), ("b", "2001:db8::2"), ("c", "2001:db8:0:1::1"), ("d", "::ffff:192.0.2.1"),
                       ("e", "192.0.2.1"), ("f", "x"), ("g", "y")):
        table.open(name, host=host)
    assert table.aborted() == "adf"


@pytest.mark.parametrize("host", [PROXY, f"::ffff:{PROXY}"])
def test_trusted_proxy_has_the_limit_of_all(host: str) -> None:
    table = Table(3, per_address=1)
    table.open("a", "b", "c", host=host)
    assert not table.aborted()
    table.open("d", host=host)
    assert table.aborted() == "a" and not table.excess()


def test_closed_addresses_use_no_memory() -> None:
    table = Table(3)
    for n in range(9):
        table.open(str(n), host=f"192.0.2.{n}")
    for n in range(9):
        table.close(str(n))
    assert len(table.table) == 0 and not table.table._by_address and not table.table._idle
