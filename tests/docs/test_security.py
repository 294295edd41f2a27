"""The threat model names a test for every limit."""

import re

import pytest

from tests.docs.named import TEST
from tests.repository import ROOT

PAGE = (ROOT / "docs/security.md").read_text()
SECTIONS = re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
ROWS = [(heading, row) for heading, text in SECTIONS if "| test |" in text
        for row in re.findall(r"^\|.*\|$", text, re.M)[2:]]


@pytest.mark.parametrize(("heading", "row"), ROWS)
def test_each_limit_names_its_test(heading: str, row: str) -> None:
    assert TEST.search(row.rstrip("|").rsplit("|", 1)[1]), f"{heading}: name a test in the last column of: {row}"


def test_people_services_and_files_have_limits() -> None:
    assert {heading for heading, _ in ROWS} == {"People", "Services", "Files"}
