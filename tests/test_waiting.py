"""The waiting helper: what it returns, and what its failure says."""

import time

import pytest

from tests.waiting import SHOWN, eventually, eventually_async


def test_first_true_value_is_returned() -> None:
    values = iter([0, "", [], "here", "later"])
    assert eventually(lambda: next(values), every=0.0) == "here"


def test_failure_names_the_condition_and_what_was_seen() -> None:
    found = [3, 4]
    with pytest.raises(AssertionError) as error:
        eventually(lambda: len(found) > 5 and "all", 0.01)
    message = str(error.value)
    assert 'not within 0.01 s: eventually(lambda: len(found) > 5 and "all", 0.01)' in message
    assert "last value: False" in message and "found: [3, 4]" in message


def test_failure_shows_a_call_of_several_lines_and_details() -> None:
    with pytest.raises(AssertionError) as error:
        eventually(lambda: None,
                   seconds=0.0,
                   details=lambda: "log of the server")
    assert "eventually(lambda: None, seconds=0.0, details=" in str(error.value)
    assert "last value: None" in str(error.value) and "log of the server" in str(error.value)


def test_given_text_replaces_the_source() -> None:
    with pytest.raises(AssertionError, match=r"^not within 0 s: the first version\n"):
        eventually(lambda: 0, 0.0, "the first version")


def test_long_values_are_cut() -> None:
    long = "x" * 5000
    with pytest.raises(AssertionError) as error:
        eventually(lambda: long == "y", 0.0, "y")
    assert len(str(error.value)) < SHOWN + 200 and "(5002 characters)" in str(error.value)


def test_waiting_ends_in_time() -> None:
    began = time.monotonic()
    with pytest.raises(AssertionError):
        eventually(lambda: False, 0.1)
    assert 0.1 <= time.monotonic() - began < 10


async def test_async_waiting_fails_alike() -> None:
    seen = ["first"]
    assert await eventually_async(lambda: seen) == ["first"]
    with pytest.raises(AssertionError) as error:
        await eventually_async(lambda: len(seen) == 2, 0.02)
    assert "await eventually_async(lambda: len(seen) == 2, 0.02)" in str(error.value)
    assert "seen: ['first']" in str(error.value)
