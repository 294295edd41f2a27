"""Versions are identified by number and digest: an inference server over a real parameter store whose numbers are
reused."""

import random
import time
from pathlib import Path

import numpy as np
import pytest
import redis
import torch

from five.clients.inference import NEWEST, RESET
from five.services.inference.batcher import Batcher, BatcherOptions
from five.services.inference.loading import StoreSource
from five.services.inference.models import Models
from five.services.inference.requests import Request
from five.services.inference.sessions import SessionTable
from rapid.blobs import BlobStore
from rapid.config import StoreConfig
from rapid.store.keys import Keys
from rapid.store.parameters import ParameterStore
from tests.services.counting import STATE_SPECS, CountingBuilder, CountingPolicy, observations
from tests.waiting import eventually


def publish(store: ParameterStore, version: int, bias: int) -> None:
    store.publish(version, {"version": np.array([version]), "bias": np.array([bias])}, {"reward_std": float(bias)})


def replace(store: ParameterStore, client: redis.Redis, version: int, bias: int) -> None:
    """Revert the run before that version and publish another one with its number."""
    keys = Keys("r")
    client.hdel(keys.versions, str(version))
    head = store.head()
    if head == version:
        client.delete(keys.head)
    publish(store, version, bias)


@pytest.fixture
def store(redis_client: redis.Redis, tmp_path: Path) -> ParameterStore:
    return ParameterStore(redis_client, redis_client, "r", StoreConfig(keep_versions=8, archive_every=1),
                          BlobStore(str(tmp_path)))


def policy(served: object) -> CountingPolicy:
    found = served.policy  # type: ignore[attr-defined]
    assert isinstance(found, CountingPolicy)
    return found


def test_newest_version_is_reloaded_only_when_its_digest_changes(
        store: ParameterStore, redis_client: redis.Redis) -> None:
    models = Models(StoreSource(store, False), CountingBuilder(), past_bytes=2, poll_seconds=60)
    publish(store, 1, 10)
    assert models.refresh() and not models.refresh()
    publish(store, 2, 20)
    assert models.refresh() and models.newest == 2
    with models.use_newest() as before:
        replace(store, redis_client, 2, 21)
        assert models.refresh()
        assert policy(before).bias == 20  # a running batch keeps the version it began with
        with models.use_newest() as after:
            assert (after.version, policy(after).bias, after.reward_std) == (2, 21, 21.0)
            assert after.digest != before.digest
    assert not models.refresh() and models.resident == [1, 2]


def test_past_version_is_reloaded_when_its_digest_changes(
        store: ParameterStore, redis_client: redis.Redis) -> None:
    models = Models(StoreSource(store, False), CountingBuilder(), past_bytes=2, poll_seconds=60)
    for version in (1, 2, 3):
        publish(store, version, 10 * version)
    models.refresh()
    held, other = models.reserve(1).result(30), models.reserve(2).result(30)
    assert policy(held).bias == 10
    replace(store, redis_client, 1, 11)
    assert not models.refresh()  # the newest is as it was
    assert policy(held).bias == 10
    again = models.reserve(1).result(30)
    assert again is not held and policy(again).bias == 11
    assert models.reserve(2).result(30) is other  # unchanged versions stay in memory
    for served in (held, again, other, other):
        models.release(served)
    models.close()


def test_newest_rows_use_the_current_digest(
        store: ParameterStore, redis_client: redis.Redis) -> None:
    """A request that reserved the number before its contents changed shares a batch with others."""
    models = Models(StoreSource(store, False), CountingBuilder(), past_bytes=2, poll_seconds=60)
    publish(store, 1, 10)
    models.refresh()
    table = SessionTable(STATE_SPECS, torch.device("cpu"), 100, 60.0)
    batcher = Batcher(models, table, BatcherOptions(queue_delay_seconds=0.2))

    def ask(session: int, policy: int) -> Request:
        return Request([session], np.array([policy], np.int64), np.array([RESET], np.uint8), observations(0.0))

    assert batcher.idle
    early = batcher.submit(ask(1, 1))
    replace(store, redis_client, 1, 12)
    models.refresh()
    late = batcher.submit(ask(2, NEWEST))
    assert not batcher.idle
    batcher.start()
    assert {int(f.result(30).actions[0, 0, 0]) for f in (early, late)} == {(1 + 12) % 7}
    assert batcher.idle
    batcher.close()
    models.close()


def test_newer_version_is_read_after_the_load_jitter(store: ParameterStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first version is loaded at once; servers with the same jitter then start at different times."""
    jitters: list[float] = []
    uniform = random.uniform

    def drawn(low: float, high: float) -> float:
        jitters.append(uniform(low, high))
        return jitters[-1]

    monkeypatch.setattr(random, "uniform", drawn)
    publish(store, 1, 10)
    servers = [Models(StoreSource(store, False), CountingBuilder(), past_bytes=2, poll_seconds=0.01,
                      load_jitter_seconds=0.5)
               for _ in range(6)]
    swapped: list[tuple[int, float]] = []
    for models in servers:
        models._on_swap = lambda served, seconds: swapped.append((served.version, time.monotonic()))
        models.start()
    try:
        eventually(lambda: len(swapped) == 6)
        published = time.monotonic()
        publish(store, 2, 20)
        eventually(lambda: len(swapped) == 12)
    finally:
        for models in servers:
            models.close()
    later = sorted(at - published for version, at in swapped if version == 2)
    # A server that was between looking for a new version and loading it loads at once.
    assert len(later) == 6 and len(jitters) == len(set(jitters)) >= 4
    assert 0.0 <= min(jitters) and max(jitters) <= 0.5
    waited = [0.0] * (6 - len(jitters)) + sorted(jitters)
    assert all(at >= jitter - 0.001 for at, jitter in zip(later, waited, strict=True))
