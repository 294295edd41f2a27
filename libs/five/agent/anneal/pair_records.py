"""Keys, seeds and stored form of the guard's pairs of games."""

import hashlib
from collections.abc import Mapping
from typing import Any

from five.agent.anneal.guard import Pair
from five.agent.anneal.variants import Variant
from rapid.malformed import MALFORMED

Json = Any


def pair_key(trial: str, rule: Variant, number: int) -> str:
    """Return the key under which a pair of an attempt is stored."""
    return f"{trial}/{rule}/{number}"


def pair_seed(trial: str, number: int) -> int:
    """Return the 63-bit seed of both games of a pair, equal under both rules."""
    digest = hashlib.blake2b(f"{trial}\0{number}".encode(), digest_size=8, person=b"five.guard").digest()
    return int.from_bytes(digest, "big") >> 1


def pair_to_json(pair: Pair) -> Json:
    """Return the stored value of a pair."""
    return {"version": pair.version, "share": pair.share, "results": list(pair.results)}


def parse_pairs(rows: Mapping[str, Json], trial: str) -> list[Pair]:
    """Return the stored pairs of an attempt. Raise ValueError for a damaged row."""
    pairs = []
    for name, row in rows.items():
        try:
            attempt, rule, number = name.rsplit("/", 2)
            if attempt == trial:
                first, second = row["results"]
                pairs.append(Pair(Variant(rule), int(number), int(row["version"]), float(row["share"]),
                                  (float(first), float(second))))
        except MALFORMED as error:
            raise ValueError(f"the guard's pair {name!r} is damaged: {error}") from None
    return pairs
