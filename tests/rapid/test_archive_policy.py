"""Archived versions of a long run that stay."""

from itertools import pairwise

import pytest

from rapid.config import StoreConfig
from rapid.store.archive_policy import NEWEST, ArchivePolicy
from rapid.store.recent_versions import KEPT

LONG = 5000


def kept(policy: ArchivePolicy, head: int) -> list[int]:
    """Return the multiples that stay, newest first."""
    return [version for version in range(head - head % policy.every, -1, -policy.every) if policy.stays(version, head)]


@pytest.mark.parametrize("limit", [2, 7, 40, 41])
@pytest.mark.parametrize("every", [1, 30])
def test_archive_is_bounded_and_its_newer_half_is_dense(limit: int, every: int) -> None:
    policy = ArchivePolicy(every, limit, 1)
    for head in range(0, 1000 * every, 17 * every + 1):
        found = kept(policy, head)
        assert found == policy.multiples(head) and len(found) <= limit
        dense = [head - head % every - i * every for i in range(limit - max(limit // 2, 1))]
        assert found[:len(dense)] == [version for version in dense if version >= 0]
        older = found[len(dense):]
        assert {a - b for a, b in pairwise(older)} <= {policy.spacing(head)}
        assert head < limit * every or len(older) > (limit // 2) // 2, "no more than half of them are removed at once"


def test_removed_version_never_belongs_to_the_archive_again() -> None:
    policy, before = ArchivePolicy(10, 40, NEWEST), set[int]()
    for head in range(0, LONG, 10):
        now = set(kept(policy, head))
        assert now - before <= {head}
        before = now


def test_newest_versions_stay_whatever_the_limit() -> None:
    policy = ArchivePolicy.of(StoreConfig(archive_every=1, max_archived=4, keep_archived=2))
    assert kept(policy, 1000)[:NEWEST] == list(range(1000, 1000 - NEWEST, -1)) and NEWEST > KEPT
    many = ArchivePolicy.of(StoreConfig(archive_every=1, max_archived=4, keep_archived=300))
    assert kept(many, 1000)[:300] == list(range(1000, 700, -1)) and len(kept(many, 1000)) <= 302


@pytest.mark.parametrize("every", [0, 10])
def test_without_a_limit_every_version_stays(every: int) -> None:
    policy = ArchivePolicy.of(StoreConfig(archive_every=every, max_archived=0))
    assert all(policy.stays(version, LONG) for version in range(LONG))
    assert policy.multiples(100) == (list(range(100, -1, -10)) if every else [])


def test_default_keeps_all_versions_of_a_run_of_the_papers_length() -> None:
    """Its Rerun had 54,000 versions and more, of which every tenth joined the pool."""
    policy = ArchivePolicy.of(StoreConfig(archive_every=10))
    assert len(policy.multiples(60_000)) == 6001
