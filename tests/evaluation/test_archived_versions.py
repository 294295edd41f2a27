"""Versions of a run's archive: their numbers, the newest, and those that are older than a surgery."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dota.spaces import Layout
from five.agent.compute import torch_threads
from five.agent.model.policy import Policy
from five.agent.surgery import AgentSpec, Plan, migrate_policy
from five.evaluation.archived_versions import ArchivedVersions, VersionNotArchived, VersionUnreadable
from five.local.run_folder import RunFolder, RunUnavailable
from five.run.load import load, save
from rapid import tensorfile
from rapid.blobs import BlobStore
from rapid.store.record import RunRecord
from tests.cli.test_ladder import ended_run

torch.set_num_threads(1)


def spec_of(folder: RunFolder) -> AgentSpec:
    config = ArchivedVersions(folder).config
    return AgentSpec(config.game, config.model)


def random_tensors(spec: AgentSpec) -> dict[str, np.ndarray]:
    torch.manual_seed(9)
    return {n: t.numpy() for n, t in Policy(Layout(spec.game), spec.model).state_dict().items()}


def put(folder: RunFolder, name: str, tensors: dict[str, np.ndarray] | None = None, **meta: Any) -> None:
    """Archive tensors under that name; some number, if the test does not load them."""
    pieces = tensorfile.file_pieces(tensors or {"a": np.ones(1, np.float32)}, meta, label=name)
    BlobStore(str(folder.path / "blobs")).put(pieces, f"trial/versions/{name}")


def record(folder: RunFolder, old: AgentSpec, *plans: Plan) -> AgentSpec:
    """Write the record of a run that these plans changed, and return what it runs now."""
    rows, spec = {}, old
    for plan in plans:
        rows[plan.digest] = {"plan": plan.to_yaml(), **spec.trees()}
        spec = plan.target(spec)
    trees = spec.trees()
    found = RunRecord(1 + len(plans), 1, trees["game"], trees["model"], spec.layout.hash, spec.schema, tuple(rows))
    folder.record.write_text(json.dumps({"record": json.loads(found.to_json()), "plans": rows}))
    return spec


def wider(spec: AgentSpec) -> Plan:
    return Plan.from_values({"name": "wider", "parent": spec.schema,
                             "steps": [{"kind": "widen", "layer": "set", "to": spec.model.set + 3}]})


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    folder = ended_run(tmp_path, versions=())
    folder.record.write_text("{")
    with pytest.raises(RunUnavailable, match=r"record\.json is not a run's record: .*`five report` writes it again"):
        _ = ArchivedVersions(folder).config


def test_only_names_of_ten_digits_are_versions(tmp_path: Path) -> None:
    folder = ended_run(tmp_path, versions=())
    for name in ("0000000030", "0000000004", "12", "000000005", "00000000006", "000000000x", "0000000007.old"):
        put(folder, name)
    assert ArchivedVersions(folder).numbers() == [4, 30]


def test_newest_version_is_loaded_for_evaluation(tmp_path: Path) -> None:
    folder = ended_run(tmp_path, versions=())
    for name in ("0000000000", "0000000004"):
        put(folder, name)
    tensors = random_tensors(spec_of(folder))
    put(folder, "0000000009", tensors, note=1)
    number, policy, meta = ArchivedVersions(folder).load()
    assert number == 9 and meta["note"] == 1 and not policy.training
    assert not any(parameter.requires_grad for parameter in policy.parameters())
    for name, tensor in policy.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), tensors[name], err_msg=name)
    with pytest.raises(VersionNotArchived, match="nearest archived versions: 0, 4, 9"):
        ArchivedVersions(folder).load(5)


def test_loaded_version_acts_natively_on_several_cores(tmp_path: Path) -> None:
    """PyTorch has a thread for each core, and `freeze` supports policies only while it has one."""
    folder = ended_run(tmp_path, versions=(4,))
    with torch_threads(2):
        _, policy, _ = ArchivedVersions(folder).load()
        assert policy.actor is not None and torch.get_num_threads() == 2


def test_five_nearest_versions_are_named(tmp_path: Path) -> None:
    folder = ended_run(tmp_path, versions=())
    for version in (-1, 3):
        with pytest.raises(VersionNotArchived, match=r"run 'trial' has no archived versions: .*archive_every \(\d+\)"):
            ArchivedVersions(folder).load(version)
    for number in (0, 1, 7, 10, 20, 30, 40):
        put(folder, f"{number:010d}")
    with pytest.raises(VersionNotArchived, match="version 25 .* nearest archived versions: 7, 10, 20, 30, 40$"):
        ArchivedVersions(folder).load(25)


def test_version_whose_blob_is_lost_is_named(tmp_path: Path) -> None:
    folder = ended_run(tmp_path, versions=())
    put(folder, "0000000004", {"a": np.ones(10_000, np.float32)})
    for path in (folder.path / "blobs").rglob("*"):
        if path.is_file() and path.stat().st_size > 10_000:
            path.unlink()
    with pytest.raises(VersionNotArchived, match="version 4 of run 'trial': "):
        ArchivedVersions(folder).load(4)


def test_version_older_than_a_surgery_is_migrated(tmp_path: Path) -> None:
    folder = ended_run(tmp_path, versions=())
    old = spec_of(folder)
    plan = wider(old)
    tensors = random_tensors(old)
    put(folder, "0000000003", tensors, schema=old.schema)
    new = record(folder, old, plan)
    archive = ArchivedVersions(folder)
    assert archive.config.model.set == new.model.set == old.model.set + 3
    _, policy, _ = archive.load(3)
    expected = migrate_policy(plan, old, tensors)
    for name, tensor in policy.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), expected[name], err_msg=name)


@pytest.mark.parametrize("recorded", [False, True])
def test_version_of_an_unknown_schema_is_refused(tmp_path: Path, recorded: bool) -> None:
    folder = ended_run(tmp_path, versions=())
    for number, schema in enumerate(("0" * 16, "f" * 16)):
        put(folder, f"{number:010d}", schema=schema)
    if recorded:
        old = spec_of(folder)
        record(folder, old, wider(old))
    for number, schema in enumerate(("0" * 16, "f" * 16)):
        with pytest.raises(VersionUnreadable, match=f"version {number} was made for .* model schema {schema}"):
            ArchivedVersions(folder).load(number)


def test_configured_blob_store_is_preferred(tmp_path: Path) -> None:
    folder = ended_run(tmp_path, versions=())
    put(folder, "0000000004")
    (folder.path / "blobs").rename(tmp_path / "elsewhere")
    assert ArchivedVersions(folder).numbers() == []
    config = load(folder.config)
    save(config.model_copy(update={"blobs": config.blobs.model_copy(update={"url": str(tmp_path / "elsewhere")})}),
         folder.config)
    assert ArchivedVersions(folder).numbers() == [4]
