"""Plain-text tables of the commands."""

from collections.abc import Sequence


def align(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as text with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
                     for row in rows)
