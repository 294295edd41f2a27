"""docs/design.md names tests that show what it says: they have to be there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/design.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))


def test_it_names_some() -> None:
    assert len(NAMED) > 10


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_a_named_test_exists(file: str, test: str) -> None:
    assert re.search(rf"^(?:async )?def {test}\(", (ROOT / file).read_text(), re.M)


def test_named_files_exist() -> None:
    for path in re.findall(r"`((?:libs|services|charts|docs|configs)/[\w./-]+)`", PAGE):
        assert (ROOT / path).exists(), path
