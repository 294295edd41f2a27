"""Versions of a warm-up, told apart by their metadata in a real store."""

from dataclasses import replace

import redis

from rapid.store.parameters import ParameterStore
from rapid.store.warming import Warming
from tests.rapid.conftest import tensors


def test_metadata_says_which_versions_are_of_a_warm_up(store: ParameterStore, database: redis.Redis) -> None:
    for version, meta in ((1, {}), (2, {"warming": True}), (3, {"warming": False})):
        store.publish(version, tensors(version), meta)
    warming = Warming(store)
    assert [warming.includes(record) for record in store.records()] == [False, True, False]
    # Asked once: what is known needs no store.
    known = store.records()
    database.flushall()
    assert [warming.includes(record) for record in known] == [False, True, False]


def test_a_version_whose_contents_are_gone_is_not_to_be_played_with(store: ParameterStore) -> None:
    store.publish(1, tensors(1), {})
    (record,) = store.records()
    assert Warming(store).includes(replace(record, version=9))
