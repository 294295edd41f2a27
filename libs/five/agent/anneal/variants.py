"""Assignment of games to the variants of an anneal."""

import hashlib
from enum import StrEnum


class Variant(StrEnum):
    """Rules of a game: without or with the change that is annealed in."""

    OLD = "old"
    NEW = "new"


VARIANTS = (Variant.OLD, Variant.NEW)  # in the order of a rollout's game variants


def hash_fraction(anneal: str, game: str) -> float:
    """Return a number in [0, 1) from 53 bits of the hash of the anneal's and the game's id."""
    digest = hashlib.blake2b(f"{anneal}\0{game}".encode(), digest_size=8).digest()
    return float((int.from_bytes(digest, "big") >> 11) / 2**53)


def assign_variant(anneal: str, game: str, share: float) -> Variant:
    """Return the variant of a game, NEW for a ``share`` of all ids.

    The result depends only on the ids and is monotone: a game with the change at some share has it at every larger one.
    """
    return Variant.NEW if hash_fraction(anneal, game) < share else Variant.OLD
