"""Tables of tests/dota/tooltips: what tooltips, notes and patch notes promise, and the test of each clause."""

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
FOLDER = TESTS / "tooltips"
SOURCE = r"(?:tooltip|note|scepter|files|wiki|patch 7\.\d\d[a-z]?)"
SOURCES = re.compile(f"{SOURCE}(?:, {SOURCE})*")
NOT_PLAYED = "not played: "
TEST = re.compile(r"`(test_\w+\.py)::(test_\w+)`")
HEADERS = {"| clause | source | program | numbers | test |", "| talent | clause | source | program | test |"}


@dataclass(frozen=True)
class Row:
    """Clause about `subject`, which is an ability, item or talent."""

    where: str  # file and line
    subject: str
    clause: str
    source: str
    program: str
    numbers: tuple[str, ...]
    test: str

    def tests(self) -> list[tuple[str, str]]:
        """Return files and names of the tests that hold the clause."""
        return TEST.findall(self.test)


def read(path: Path) -> list[Row]:
    """Return the rows of a file. Raises ValueError for a line outside a table."""
    rows, section, talents = [], "", False
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        where = f"{path.name}:{number}"
        if line.startswith("## "):
            section = line.removeprefix("## ")
        elif line in HEADERS:
            talents = line.startswith("| talent ")
            if talents != (section == "talents"):
                raise ValueError(f"{where}: the columns do not fit the section {section!r}")
        elif line.startswith("| "):
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if len(cells) != 5 or not section:
                raise ValueError(f"{where}: {len(cells)} cells, expected 5, below a heading with the ability's name")
            if talents:
                rows.append(Row(where, cells[0], cells[1], cells[2], cells[3], (), cells[4]))
            else:
                numbers = tuple(name.strip(" `") for name in cells[3].split(",") if name.strip())
                rows.append(Row(where, section, cells[0], cells[1], cells[2], numbers, cells[4]))
        elif line and not re.fullmatch(r"\|(?:-+\|){5}|# .*", line):
            raise ValueError(f"{where}: expected a table, found {line!r}")
    return rows


@cache
def names_in(file: str) -> set[str]:
    """Return the names of a file's tests; no names if there is no such file."""
    path = TESTS / file
    tree = ast.parse(path.read_text("utf-8")) if path.is_file() else ast.Module([], [])
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}
