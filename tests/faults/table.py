"""The table of docs/reliability.md: ``python -m tests.faults.table`` writes the results of the last runs."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.faults.cluster import LINKS
from tests.faults.links import HARMS
from tests.faults.losses import RESULTS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- faults: begin -->", "<!-- faults: end -->"


def row(found: Mapping[str, Any]) -> str:
    """Return the table row of one fault."""
    learning = ", ".join(map(str, found["learning"])) or "-"
    return (f"| {found['fault']} | {found['seconds']:g} | {found['goes_on']:g} | {found.get('held', '-')} "
            f"| {found['versions']} | {found['ratings']} | {found['games']} | {learning} |")


def without(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the faults of links that have no row."""
    there = {row["fault"] for row in rows}
    missing = {harm: [f"{client} to {server}" for client, server in LINKS
                      if f"{harm}, {client} to {server}" not in there] for harm in HARMS}
    return "".join(f"\n\nNo figure yet of a {harm}: {'; '.join(links)}." for harm, links in missing.items() if links)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the whole table."""
    return "\n".join(["| fault | for s | two versions later after s | learning held, s | versions lost "
                      "| ratings lost or twice | games twice | versions of learning repeated |",
                      "| --- | --- | --- | --- | --- | --- | --- | --- |", *map(row, rows)]) + without(rows)


def written_into(page: str, body: str) -> str:
    """Return the page with the table in it. Raise ValueError when it has no place for one."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{body}\n\n{END}{after}"


def main() -> int:
    """Write the page."""
    rows = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]
    PAGE.write_text(written_into(PAGE.read_text(), table(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
