"""Damaged rows of Redis are named."""

from typing import Any

import pytest

from rapid.store.errors import Corrupt
from rapid.store.rows import decode_row, read_json


@pytest.mark.parametrize("text", ["{", b"", b"\xff\xfe\xfd", "[" * 100_000, "1" * 5000])
def test_text_that_is_not_json_is_corrupt(text: str | bytes) -> None:
    with pytest.raises(Corrupt, match="five:r:status is damaged in Redis"):
        read_json(text, "five:r:status")


@pytest.mark.parametrize("text", ['{"b": 1}', "[]", "7", "null", '{"a": "x"}', '{"a": []}', '{"a": null}'])
def test_row_of_another_shape_is_corrupt(text: str) -> None:
    with pytest.raises(Corrupt, match="it is damaged in Redis"):
        decode_row(text, "it", lambda row: int(row["a"]))


def test_row_is_decoded() -> None:
    assert read_json(b'{"a": [1, 2.5, null]}', "it") == {"a": [1, 2.5, None]}
    assert decode_row('{"a": 1}', "it", lambda row: row["a"] + 1) == 2


def test_other_errors_are_not_hidden() -> None:
    def fail(row: Any) -> None:
        raise ConnectionError("lost")

    with pytest.raises(ConnectionError, match="lost"):
        decode_row("{}", "it", fail)
