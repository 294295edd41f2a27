"""The fuzzers themselves: a short run of each, and the record of a finding."""

import json
import os
from pathlib import Path
from random import Random

import pytest

from five.protos.v1 import env_pb2
from tests.fuzz import engine, message_targets, mutators, service_targets
from tests.fuzz.__main__ import repeat
from tests.fuzz.rest import fuzz_rest
from tests.fuzz.sockets import fuzz_sockets
from tests.fuzz.targets import Target, all_targets, split_messages

MINUTES = float(os.environ.get("FIVE_FUZZ_MINUTES", "1"))


def test_mutators_are_repeatable_and_keep_the_syntax() -> None:
    target = all_targets()["play-response"]
    data = target.seeds["valid-0"]
    assert target.mutate is not None
    assert target.mutate(data, Random(3)) == target.mutate(data, Random(3))
    parsed = 0
    for number in range(100):
        try:
            env_pb2.PlayResponse.FromString(target.mutate(data, Random(number)))
            parsed += 1
        except Exception:
            pass
    assert parsed > 70
    changed = [mutators.mutate_json(b'{"a": [1, {"b": "c"}]}', Random(number)) for number in range(200)]
    assert len(set(changed)) > 100
    stream = service_targets.env_requests()[0]
    assert len(split_messages(mutators.mutate_stream(env_pb2.PlayRequest)(stream, Random(5)))) in (3, 4, 5)


def test_finding_is_stored_with_its_smallest_input(tmp_path: Path) -> None:
    folder = engine.FindingsFolder(tmp_path)
    path = folder.add("a", "a: KeyError in x.py:f: 'digest'", b"long input")
    assert folder.add("a", "a: KeyError in x.py:f: 'size'", b"short") == path
    folder.add("a", "a: KeyError in x.py:f: 'size'", b"longer again")
    folder.add("a", "a: TypeError in x.py:f: nothing", b"other")
    assert path.read_bytes() == b"short" and len(folder.all()) == 2


def test_target_that_crashes_is_a_finding(tmp_path: Path) -> None:
    pytest.importorskip("atheris")

    def decode(data: bytes) -> None:
        if len(data) > 5:
            os.abort()
        if data.startswith(b"\xff"):
            raise KeyError("a")

    target = Target("crash", "wire", decode, lambda: [b"abc"])
    cases, _ = engine.run_target(target, 1.5, 1, tmp_path)
    found = {path.with_name(f"{path.name}.txt").read_text().splitlines()[0] for path in
             engine.FindingsFolder(tmp_path).all()}
    assert cases > 0 and any("the process ended with" in text for text in found)


def test_stored_finding_is_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run-record" / "deep"
    path.parent.mkdir()
    path.write_bytes(b"[" * 3000)
    assert repeat(path) == 0 and "run-record: refused" in capsys.readouterr().out
    assert message_targets.LAYOUT.hash


@pytest.mark.fuzz
@pytest.mark.timeout(7200)
def test_rest_api_under_random_requests(tmp_path: Path) -> None:
    summary = fuzz_rest(MINUTES, 1, tmp_path)
    assert not summary["findings"], [Path(path).read_text() for path in summary["findings"]]
    assert summary["cases"] > 100
    assert {status.split()[0] for status in summary["statuses"]} == {"operator", "console", "viewer", "nobody"}


@pytest.mark.fuzz
@pytest.mark.timeout(7200)
def test_web_sockets_under_random_clients(tmp_path: Path) -> None:
    summary = fuzz_sockets(MINUTES, 1, tmp_path)
    assert not summary["findings"], [json.loads(Path(path).read_text()) for path in summary["findings"]]
    assert summary["cases"] > 20 and len(summary["kinds"]) == 5
