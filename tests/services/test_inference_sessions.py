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
