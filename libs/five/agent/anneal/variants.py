"""Which games are played under a change that is on its way in."""

import hashlib
from enum import StrEnum


class Variant(StrEnum):
    """What a game is played under: the game as it was, or with the change."""

    OLD = "old"
    NEW = "new"


VARIANTS = (Variant.OLD, Variant.NEW)  # in the order of the variants that a rollout's games know


def hash_fraction(anneal: str, game: str) -> float:
    """Where a game stands in [0, 1), from 53 bits of the hash of its id and of the anneal's."""
    found = hashlib.blake2b(f"{anneal}\0{game}".encode(), digest_size=8).digest()
    return float((int.from_bytes(found, "big") >> 11) / 2**53)


def assign_variant(anneal: str, game: str, share: float) -> Variant:
    """The arm of a game: NEW for a ``share`` of all ids.

    It depends on nothing but the ids, so that whoever asks gets the same answer, and is monotone: a game that has the
    change at some share has it at any larger one.
    """
    return Variant.NEW if hash_fraction(anneal, game) < share else Variant.OLD
