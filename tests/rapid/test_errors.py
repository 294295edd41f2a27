"""Errors of the stores: which failures a retry may fix, and what a held lease says."""

import time

import pytest
import redis

from rapid.store.errors import (
    Corrupt,
    FencedOut,
    FunctionsMissing,
    LeaseHeld,
    StoreRefused,
    StoreUnreachable,
    VersionConflict,
    VersionMissing,
    is_away,
)


@pytest.mark.parametrize("error", [
    OSError("disk full"), TimeoutError("slow"), redis.ConnectionError("gone"), redis.TimeoutError("slow"),
    redis.ResponseError("OOM"), StoreUnreachable("gone"), StoreRefused("password"), FunctionsMissing("not loaded")])
def test_failure_of_a_store_may_pass(error: Exception) -> None:
    assert is_away(error) is True


@pytest.mark.parametrize("error", [
    ValueError("invalid"), VersionConflict("other contents"), VersionMissing("gone"), Corrupt("damaged"),
    FencedOut("lease", "lost"), KeyboardInterrupt()])
def test_error_of_the_caller_is_permanent(error: BaseException) -> None:
    assert is_away(error) is False


@pytest.mark.parametrize(("left", "shown"), [(30.4, "30"), (0.6, "1"), (0.4, "0"), (0.0, "0"), (-9.0, "0")])
def test_held_lease_shows_its_holder_and_remaining_seconds(left: float, shown: str) -> None:
    since = time.mktime((2026, 3, 4, 5, 6, 7, 0, 0, -1))
    error = LeaseHeld("r", "optimizer-0", since, left)
    assert (error.holder, error.since) == ("optimizer-0", since)
    assert "optimizer-0 since 2026-03-04 05:06:07" in str(error) and f"within {shown} s" in str(error)
