"""Names and seeds of the guard's pairs, and how they are kept."""

import hashlib
from collections.abc import Mapping
from typing import Any

from five.agent.anneal.guard import Pair
from five.agent.anneal.variants import Variant

Json = Any


def pair_key(trial: str, rule: Variant, number: int) -> str:
    """What a pair of an attempt is kept under."""
    return f"{trial}/{rule}/{number}"


def pair_seed(trial: str, number: int) -> int:
    """The seed of both games of a pair, 63 bits; the same under either rule."""
    found = hashlib.blake2b(f"{trial}\0{number}".encode(), digest_size=8, person=b"five.guard").digest()
    return int.from_bytes(found, "big") >> 1


def pair_to_json(pair: Pair) -> Json:
    """What is kept of a pair beside its name."""
    return {"version": pair.version, "share": pair.share, "results": list(pair.results)}


def parse_pairs(rows: Mapping[str, Json], trial: str) -> list[Pair]:
    """The pairs of an attempt among those that are kept."""
    found = []
    for name, row in rows.items():
        of, rule, number = name.rsplit("/", 2)
        if of == trial:
            first, second = row["results"]
            found.append(Pair(Variant(rule), int(number), int(row["version"]), float(row["share"]),
                              (float(first), float(second))))
    return found
