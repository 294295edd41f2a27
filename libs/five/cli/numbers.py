"""Argument types for numbers of the command line, which refuse values that no command can use."""

import argparse
import math
import re
from collections.abc import Callable

from rapid.section import MAX_INTEGER, MAX_LARGE_INTEGER


def integer(low: int, high: int = MAX_INTEGER) -> Callable[[str], int]:
    """Return an argument type: a decimal integer from ``low`` to ``high``."""
    def parse(text: str) -> int:
        if len(text) > 40 or not re.fullmatch(r"[-+]?[0-9]+", text) or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text[:40]!r}: an integer from {low} to {high} is required")
        return int(text)

    return parse


def positive(advice: str = "") -> Callable[[str], float]:
    """Return an argument type: a finite number above 0. ``advice`` ends the error."""
    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 < value < math.inf:
            raise argparse.ArgumentTypeError(f"{text[:40]!r}: a number above 0 is required{advice}")
        return value

    return parse


def temperature(text: str) -> float:
    """Parse a temperature of sampling, from 0.01 to 100 as in a packed agent's card."""
    value = positive("; `--greedy` takes the most probable actions")(text)
    if not 0.01 <= value <= 100:
        raise argparse.ArgumentTypeError(f"{text[:40]!r}: a number from 0.01 to 100 is required")
    return value


seed = integer(0, MAX_LARGE_INTEGER)
games = integer(1)
version = integer(-1)  # -1: the newest
threads = integer(0, 1024)
