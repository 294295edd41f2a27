"""Generated code is complete and current, and the protos follow the project's rules."""

import ast
import os
import re
import shutil
from pathlib import Path

import pytest
from google.protobuf import descriptor_pool

from five.protos.v1 import env_pb2, evaluator_pb2, experience_pb2, inference_pb2, opponents_pb2, play_pb2, tensors_pb2
from protos import build as protos

OURS = "five/v1"
MODULES = (env_pb2, evaluator_pb2, experience_pb2, inference_pb2, opponents_pb2, play_pb2, tensors_pb2)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for source in protos.sources():
        target = tmp_path / source.relative_to(protos.ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    return tmp_path


def test_build_writes_typed_importable_code(copy: Path) -> None:
    assert not protos.is_current(copy)
    names = {path.name for path in protos.build(copy)}
    for source in protos.sources():
        assert {f"{source.stem}_pb2.py", f"{source.stem}_pb2.pyi"} <= names
    assert {"inference_pb2_grpc.py", "inference_pb2_grpc.pyi"} <= names and "tensors_pb2_grpc.py" not in names
    assert protos.is_current(copy)
    for path in copy.rglob("*.py*"):
        ast.parse(path.read_text())
        assert not re.search(r"^(from|import) (five\.v1|valve)\b", path.read_text(), re.MULTILINE)
    types = (copy / OURS / "inference_pb2_grpc.pyi").read_text()
    assert "Act: grpc.aio.StreamStreamMultiCallable[inference_pb2.ActRequest, inference_pb2.ActResponse]" in types
    assert "from five.protos.valve import dotaservice_pb2" in (copy / "valve/dotaservice_pb2_grpc.pyi").read_text()
    changed = copy / OURS / "env.proto"
    newer = max(p.stat().st_mtime for p in (copy / OURS).iterdir()) + 10
    os.utime(changed, (newer, newer))
    assert not protos.is_current(copy)


def test_invalid_proto_changes_nothing(copy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    protos.build(copy)
    before = (copy / OURS / "env_pb2.py").read_text()
    (copy / OURS / "env.proto").write_text('syntax = "proto3"; package five.v1; message {')
    with pytest.raises(RuntimeError, match="protoc failed"):
        protos.build(copy)
    assert "env.proto" in capfd.readouterr().err
    assert (copy / OURS / "env_pb2.py").read_text() == before
    with pytest.raises(RuntimeError, match="no .proto files"):
        protos.build(copy / "empty")


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.DESCRIPTOR.name)
def test_field_names_follow_the_rules(module) -> None:
    file = descriptor_pool.Default().FindFileByName(module.DESCRIPTOR.name)
    assert file.package == "five.v1"
    for enum in file.enum_types_by_name.values():
        prefix = "".join("_" + c if c.isupper() else c.upper() for c in enum.name).lstrip("_")
        assert enum.values_by_number[0].name == f"{prefix}_UNSPECIFIED"
        assert all(value.name.startswith(prefix + "_") for value in enum.values)
    types: list[str] = []
    for service in file.services_by_name.values():
        assert service.name.endswith("Service")
        for method in service.methods:
            assert method.input_type.name.endswith("Request") and method.output_type.name.endswith("Response")
            types += [method.input_type.name, method.output_type.name]
    assert len(types) == len(set(types)), "a request and a response type for each RPC"


DECLARED = re.compile(r"^\s+(?:rpc (?P<rpc>\w+)\(|(?:repeated )?(?:[\w.]+ )?(?P<field>\w+) = \d+;)")


def undocumented(text: str) -> list[str]:
    """Return fields, enum values and RPCs of a proto without a comment right above. An enum's zero needs none."""
    bare, lines = [], text.splitlines()
    for before, line in zip(["", *lines], lines, strict=False):
        found = DECLARED.match(line)
        if found is None or (found["field"] or "").endswith("_UNSPECIFIED"):
            continue
        if not before.strip().startswith("//"):
            bare.append(found["field"] or found["rpc"])
    return bare


@pytest.mark.parametrize("source", sorted((protos.ROOT / OURS).glob("*.proto")), ids=lambda p: p.name)
def test_every_field_has_a_comment(source: Path) -> None:
    assert undocumented(source.read_text()) == []


def test_one_comment_does_not_serve_two_fields() -> None:
    text = ("message M {\n  // Both.\n  bytes a = 1;\n  repeated Tensor b = 2;\n}\n"
            "enum E {\n  E_UNSPECIFIED = 0;\n  E_A = 1;\n}")
    assert undocumented(text) == ["b", "E_A"]
    assert undocumented("service S {\n  rpc Act(A) returns (B);\n}") == ["Act"]


@pytest.mark.parametrize("source", protos.sources(), ids=lambda p: p.name)
def test_comments_name_configuration_keys(source: Path) -> None:
    """Lengths of samples and segments are configuration, so a comment names the key, not a preset's number."""
    comments = " ".join(re.findall(r"//(.*)", source.read_text()))
    assert not re.search(r"\b(256 (timesteps|steps)|\* 16|x 16|16 (timesteps|samples))\b", comments)
