"""Orders from one part of a run to another: claimed by one holder, claimed again when it is gone."""

import pytest
import redis

from rapid.store.jobs import Orders, OrderState
from rapid.store.state import RunState


@pytest.fixture
def orders(database: redis.Redis) -> Orders:
    return Orders(RunState(database, "trial"))


def test_an_order_is_placed_once_claimed_once_and_answered(orders: Orders) -> None:
    first = orders.place("op/check/1", "check", {"plan": "a"})
    assert orders.place("op/check/1", "check", {"plan": "b"}) == first
    claimed = orders.claim("optimizer-0", fence=1)
    assert claimed is not None
    assert (claimed.id, claimed.attempt, claimed.holder) == ("op/check/1", 1, "optimizer-0")
    assert orders.claim("optimizer-0", fence=1) is None
    assert orders.still_mine(claimed)
    assert orders.answer(claimed, OrderState.DONE, {"ok": True})
    assert not orders.still_mine(claimed)
    found = orders.get("op/check/1")
    assert found is not None
    assert (found.state, found.answer) == (OrderState.DONE, {"ok": True})
    assert orders.claim("optimizer-0", fence=2) is None


def test_the_order_of_a_holder_that_is_gone_is_claimed_again_and_its_answer_refused(orders: Orders) -> None:
    orders.place("op/transform/1", "transform", {})
    dead = orders.claim("optimizer-0", fence=1)
    again = orders.claim("optimizer-0", fence=2)
    assert dead is not None
    assert again is not None
    assert again.attempt == 2
    assert not orders.answer(dead, OrderState.DONE)
    assert orders.answer(again, OrderState.FAILED, error="no room")
    found = orders.get("op/transform/1")
    assert found is not None
    assert (found.state, found.error) == (OrderState.FAILED, "no room")


def test_a_withdrawn_order_is_neither_claimed_nor_answered(orders: Orders) -> None:
    orders.place("op-1/publish/1", "publish", {})
    orders.place("op-2/check/1", "check", {})
    mine = orders.claim("optimizer-0", fence=1)
    assert mine is not None
    orders.withdraw("op-1/")
    assert not orders.still_mine(mine)
    assert not orders.answer(mine, OrderState.DONE)
    other = orders.claim("optimizer-0", fence=2)
    assert other is not None
    assert other.id == "op-2/check/1"
    orders.remove("op-1/")
    assert orders.get("op-1/publish/1") is None
    with pytest.raises(ValueError, match="not answered with"):
        orders.answer(other, OrderState.WAITING)
