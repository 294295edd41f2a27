"""Recurrent states of sessions: slots, leases and limits of the table."""

import numpy as np
import pytest
import torch

from five.services.inference.sessions import UNKNOWN, SessionsExhausted, SessionTable

SPECS = {"h": ((2, 3), np.float32)}


def table(max_sessions: int = 1000, lease: float = 10.0) -> SessionTable:
    return SessionTable(SPECS, torch.device("cpu"), max_sessions, lease)


def opened(t: SessionTable, *sessions: int) -> np.ndarray:
    slots = t.find(sessions)
    t.open(sessions, slots)
    return slots


def test_states_follow_their_sessions_in_any_order() -> None:
    t = table()
    slots = opened(t, 10, 11, 12)
    states = torch.arange(18.0).reshape(3, 2, 3)
    t.scatter(slots, {"h": states})
    assert torch.equal(t.gather(t.find([12, 10]))["h"], states[[2, 0]])


def test_growing_storage_keeps_states() -> None:
    t = table()
    first = opened(t, 1)
    t.scatter(first, {"h": torch.full((1, 2, 3), 7.0)})
    slots = opened(t, *range(100, 400))
    assert len(set(slots.tolist())) == 300 and len(t) == 301
    assert float(t.gather(t.find([1]))["h"].min()) == 7.0
    assert float(t.gather(slots)["h"].abs().max()) == 0.0


def test_reused_slot_starts_at_zero() -> None:
    t = table(max_sessions=1)
    slots = opened(t, 1)
    t.scatter(slots, {"h": torch.ones(1, 2, 3)})
    t.close([1, 99])
    assert t.find([1])[0] == UNKNOWN
    assert float(t.gather(opened(t, 2))["h"].abs().max()) == 0.0


def test_lease_expires_unless_renewed() -> None:
    t = table(lease=10)
    t.touch(opened(t, 1, 2), 100.0)
    t.touch(t.find([2]), 105.0)
    assert t.expire(109.9) == 0
    assert t.expire(110.1) == 1
    assert t.find([1, 2]).tolist()[0] == UNKNOWN and t.find([2])[0] != UNKNOWN


def test_too_many_sessions_are_refused_and_none_is_opened() -> None:
    t = table(max_sessions=2)
    opened(t, 1)
    with pytest.raises(SessionsExhausted, match="max_sessions"):
        opened(t, 2, 3)
    assert len(t) == 1


def test_restored_state_must_match_the_model() -> None:
    t = table()
    slots = opened(t, 1)
    t.write(slots, {"h": np.full((1, 2, 3), 5, np.float32)})
    assert float(t.gather(slots)["h"].mean()) == 5.0
    with pytest.raises(ValueError, match=r"shape \(1, 2, 4\)"):
        t.write(slots, {"h": np.zeros((1, 2, 4), np.float32)})
    with pytest.raises(ValueError, match="this model has"):
        t.write(slots, {"c": np.zeros((1, 2, 3), np.float32)})
    with pytest.raises(ValueError, match="this model has"):
        t.write(slots, {"h": np.zeros((1, 2, 3), np.float32), "c": np.zeros((1, 2, 3), np.float32)})
    assert float(t.gather(slots)["h"].mean()) == 5.0


def test_open_keeps_the_states_of_sessions_that_are_open() -> None:
    t = table()
    first = opened(t, 1)
    t.scatter(first, {"h": torch.ones(1, 2, 3)})
    slots = t.find([2, 1])
    t.open([2, 1], slots)
    assert slots[1] == first[0] and slots[0] != first[0]
    assert t.gather(slots)["h"].mean(dim=(1, 2)).tolist() == [0.0, 1.0]


def test_table_can_be_filled_to_its_limit_and_refilled() -> None:
    t = table(max_sessions=130)  # more than the initial slots, and no multiple of them
    slots = opened(t, *range(130))
    assert sorted(slots.tolist()) == list(range(130)) and len(t) == 130
    with pytest.raises(SessionsExhausted, match="1 new sessions do not fit: 130 of 130 are open"):
        opened(t, 500)
    t.close(list(range(100)))
    assert len(t) == 30 and opened(t, *range(1000, 1100)).min() >= 0
    assert t.storage["h"].shape == (130, 2, 3)


def test_small_table_has_no_more_slots_than_sessions() -> None:
    assert table(max_sessions=3).storage["h"].shape == (3, 2, 3)
    assert table(max_sessions=1000).storage["h"].shape == (64, 2, 3)


def test_lowest_slots_are_used_first() -> None:
    t = table()
    assert opened(t, *range(10, 80)).tolist() == list(range(70))


def test_expiry_closes_every_session_of_an_empty_lease() -> None:
    t = table(lease=10)
    assert t.expire(1e9) == 0
    t.touch(opened(t, 1, 2, 3), 100.0)
    t.close([2])
    assert t.expire(110.0) == 0  # the lease ends at 110
    assert t.expire(110.5) == 2 and len(t) == 0
    t.touch(opened(t, 4), 200.0)
    assert t.expire(205.0) == 0 and len(t) == 1


def test_clear_and_scatter_change_only_their_slots() -> None:
    t = table()
    slots = opened(t, 1, 2, 3)
    t.put(slots, {"h": np.arange(18, dtype=np.float32).reshape(3, 2, 3)})
    t.clear(slots[1:2])
    taken = t.take(slots)["h"]
    assert taken[:, 0, 0].tolist() == [0, 0, 12] and taken[0, 1, 2] == 5
    taken[...] = -1  # a copy
    out = {"h": torch.empty(2, 2, 3)}
    assert t.gather_at(torch.from_numpy(slots[[2, 0]]), out) is out
    assert out["h"][:, 1, 2].tolist() == [17, 5]
    assert torch.equal(t.gather_at(torch.from_numpy(slots[[2, 0]]))["h"], out["h"])
    t.scatter_at(torch.from_numpy(slots[:1]), {"h": torch.full((1, 2, 3), 9.0, dtype=torch.float64)})
    assert t.take(slots)["h"][:, 1, 2].tolist() == [9, 0, 17]
