"""Loading of versions into a policy: past ones take half the memory and play the same."""

import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import redis
import torch

from five.agent.model.policy import Policy
from five.agent.surgery import AgentSpec, AppliedMigration, MigrationChain, derive_plan
from five.run.migration import BrokenChain
from five.services.inference.loading import OlderVersions, PolicyLoader, StoreSource
from rapid.bfloat16 import from_bfloat16, to_bfloat16
from rapid.blobs import BlobStore
from rapid.config import StoreConfig
from rapid.store.parameters import ParameterStore
from rapid.store.record import RunRecord
from rapid.store.state import RunState
from tests.agent.model_cases import SMALL, layout, random_obs
from tests.services.optimizer_cases import GAME, MODEL

TEAMS = 4


def version_of(policy: Policy) -> dict[str, np.ndarray]:
    return {name: tensor.detach().numpy() for name, tensor in policy.state_dict().items()}


def acted(policy: Policy) -> tuple[torch.Tensor, ...]:
    obs = random_obs(policy.layout, TEAMS)
    state, out = policy.initial_state(TEAMS), []
    for _ in range(3):
        answer = policy.act(obs, state, generator=torch.Generator().manual_seed(1))
        state = answer.state
        out += [answer.actions, answer.logp, answer.values, *state.values()]
    return tuple(out)


@pytest.mark.parametrize("heroes", [1, 2])
def test_past_version_in_bfloat16_equals_float32(heroes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Autocast rounds the layers' weights at each step anyway."""
    for name in ("loading.is_supported", "loading.freeze"):
        monkeypatch.setattr(f"five.services.inference.{name}", lambda policy: False)
    monkeypatch.setattr("five.agent.compute._has_bfloat16_products", lambda device_type: True)
    torch.manual_seed(0)
    config = SMALL.model_copy(update={"precision": "bfloat16"})
    loader, made = PolicyLoader(layout(heroes), config, torch.device("cpu")), Policy(layout(heroes), config)
    newest, past = loader.create(), loader.create(past=True)
    for policy in (newest, past):
        loader.load(policy, version_of(made), {})
    layers = sum(p.numel() for n, p in made.named_parameters() if "tables" not in n and "gate" not in n)
    assert loader.nbytes(newest) - loader.nbytes(past) == 2 * layers
    with torch.no_grad():
        for one, other in zip(acted(newest), acted(past), strict=True):
            assert torch.equal(one, other)


def test_float32_model_stores_past_versions_in_float32() -> None:
    loader = PolicyLoader(layout(1), SMALL, torch.device("cpu"))
    assert loader.nbytes(loader.create(past=True)) == loader.nbytes(loader.create())
    assert not copy.copy(loader).create(past=True).training


def loaded(loader: PolicyLoader, tensors: dict[str, np.ndarray], meta: dict[str, Any]) -> Policy:
    policy = loader.create()
    loader.load(policy, tensors, meta)
    return policy


@pytest.fixture(scope="module")
def loader() -> PolicyLoader:
    return PolicyLoader(layout(1), SMALL, torch.device("cpu"))


def test_bfloat16_tensors_of_a_version_are_widened(loader: PolicyLoader) -> None:
    made = version_of(Policy(layout(1), SMALL))
    matrices = sorted(name for name, a in made.items() if a.dtype == np.float32 and a.ndim >= 2)[:3]
    carried = {name: to_bfloat16(a) if name in matrices else a for name, a in made.items()}
    for array in carried.values():
        array.flags.writeable = False  # as views of a message
    found = version_of(loaded(loader, carried, {"bfloat16": matrices}))
    for name, array in made.items():
        expected = from_bfloat16(to_bfloat16(array)) if name in matrices else array
        assert found[name].dtype == array.dtype and np.array_equal(found[name], expected), name


def test_version_of_another_model_is_refused(loader: PolicyLoader) -> None:
    made = version_of(Policy(layout(1), SMALL))
    name = next(iter(made))
    with pytest.raises(ValueError, match="made for layout other, this server has " + layout(1).hash):
        loaded(loader, made, {"layout": "other"})
    loaded(loader, made, {"layout": layout(1).hash})
    with pytest.raises(ValueError, match=f"1 tensor names .* differ: {name};"):
        loaded(loader, {n: a for n, a in made.items() if n != name}, {})
    with pytest.raises(ValueError, match="1 tensor names .* differ: another;"):
        loaded(loader, {**made, "another": made[name]}, {})
    with pytest.raises(ValueError, match=f"tensor '{name}' of the version has shape"):
        loaded(loader, {**made, name: np.zeros((1, 2, 3), np.float32)}, {})


def test_loaded_policies_are_for_evaluation_only(loader: PolicyLoader) -> None:
    for past in (False, True):
        policy = loader.create(past)
        assert not policy.training and not any(p.requires_grad for p in policy.parameters()) and not policy.dense
    assert loader.create_dense().dense


def test_memory_of_a_policy_includes_its_native_actor(loader: PolicyLoader) -> None:
    policy = loader.create()
    tensors = sum(a.nbytes for a in version_of(policy).values())
    assert loader.nbytes(policy) >= tensors * 0.99
    before = loader.nbytes(policy)
    policy.actor = SimpleNamespace(nbytes=1000)  # type: ignore[assignment]
    assert loader.nbytes(policy) == before + 1000


@pytest.fixture
def store(redis_client: redis.Redis, tmp_path: Path) -> ParameterStore:
    return ParameterStore(redis_client, redis_client, "r", StoreConfig(publish_dtype="bfloat16"),
                          BlobStore(str(tmp_path)))


def test_source_reads_versions_as_they_are_stored(store: ParameterStore) -> None:
    source = StoreSource(store, pinned=False)
    assert source.head() is None and source.digests([0, 1]) == {}
    weights = np.arange(12, dtype=np.float32).reshape(3, 4) / 7
    for version in (0, 1):
        store.publish(version, {"w": weights + version}, {"schema": "s"})
    tensors, meta = source.fetch(1)
    assert meta == {"schema": "s", "bfloat16": ["w"]} and np.array_equal(tensors["w"], to_bfloat16(weights + 1))
    records = {version: store.record(version) for version in (0, 1)}
    assert source.head() == 1
    assert source.digests([1, 7]) == {v: r.digest for v, r in records.items() if r is not None and v == 1}


def test_page_locked_buffer_is_used_again_while_it_is_large_enough(
        store: ParameterStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a CUDA device can lock pages, so here the memory is not locked."""
    empty = torch.empty
    sizes: list[int] = []

    def unlocked(size: int, *, dtype: torch.dtype, pin_memory: bool) -> torch.Tensor:
        assert pin_memory
        sizes.append(size)
        return empty(size, dtype=dtype)

    monkeypatch.setattr(torch, "empty", unlocked)
    source = StoreSource(store, pinned=True)
    versions = [np.full((rows, 4), version, np.float32) for version, rows in enumerate((100, 100, 50, 200))]
    for version, weights in enumerate(versions):
        store.publish(version, {"w": weights}, {})
    for version, weights in enumerate(versions):
        tensors, meta = source.fetch(version)
        assert np.array_equal(tensors["w"], to_bfloat16(weights)) and meta == {"bfloat16": ["w"]}
    records = [store.record(version) for version in (0, 3)]
    assert sizes == [record.bytes for record in records if record is not None]
    with pytest.raises(LookupError):
        source.fetch(9)


def test_versions_of_earlier_schemas_are_migrated(store: ParameterStore) -> None:
    """The chain is real; surgery's tests cover what its plans do to tensors."""
    spec = AgentSpec(GAME, MODEL)
    wider = AgentSpec(GAME, MODEL.model_copy(update={"lstm": 2 * MODEL.lstm}))
    chain = MigrationChain([AppliedMigration(derive_plan(spec, wider, "wider"), spec)])
    older = OlderVersions(chain, wider.schema, wider.layout.hash)
    assert older.has({"schema": spec.schema}) and not older.has({"schema": wider.schema}) and not older.has({})
    source = StoreSource(store, pinned=False, older=older)
    old = version_of(Policy(spec.layout, spec.model))
    new = version_of(Policy(wider.layout, wider.model))
    store.publish(0, old, {"schema": spec.schema, "layout": spec.layout.hash, "reward_std": 2.0})
    store.publish(1, new, {"schema": wider.schema, "layout": wider.layout.hash})
    tensors, meta = source.fetch(0)
    assert {n: a.shape for n, a in tensors.items()} == {n: a.shape for n, a in new.items()}
    assert meta == {"schema": wider.schema, "layout": wider.layout.hash, "reward_std": 2.0}
    _, meta = source.fetch(1)
    assert meta["schema"] == wider.schema and "bfloat16" in meta
    store.publish(2, old, {"schema": "unknown"})
    with pytest.raises(BrokenChain, match="version 2: "):
        source.fetch(2)


def test_run_without_surgery_has_no_older_versions(redis_client: redis.Redis) -> None:
    state, spec = RunState(redis_client, "r"), AgentSpec(GAME, MODEL)
    assert OlderVersions.of(state, RunRecord(), spec) is None
    with pytest.raises(BrokenChain):
        OlderVersions.of(state, RunRecord(chain=("d" * 64,)), spec)
