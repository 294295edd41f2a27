"""The fuzzer: cases of each kind on this core, and the record of a failing one."""

import json
from pathlib import Path

import pytest

from tests.dota import fuzzing
from tests.dota.fuzz_cases import CASES


@pytest.mark.parametrize("kind", CASES)
def test_a_case_of_each_kind(kind: str) -> None:
    assert fuzzing.run_case(4, kind) == kind


def test_a_batch_is_counted_and_goes_on_where_it_ended(tmp_path: Path) -> None:
    summary = fuzzing.fuzz(tmp_path, 10, 3, 5, "configurations")
    assert summary["cases"] == 3 and summary["next"] == 13 and summary["kinds"] == {"configurations": 3}
    assert summary["findings"] == []
    assert json.loads(json.dumps(summary)) == summary


def test_a_case_that_kills_its_process_is_kept_with_its_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The subprocess is this Python with a module that exits at the second case."""
    broken = tmp_path / "tests" / "dota"
    broken.mkdir(parents=True)
    (broken / "fuzzing.py").write_text(
        "import os, sys\n"
        "first, out = int(sys.argv[2]), open(sys.argv[6], 'a')\n"
        "for seed in range(first, first + int(sys.argv[4])):\n"
        "    print('begin', seed, file=out, flush=True)\n"
        "    if seed == 2:\n"
        "        sys.stderr.write('it broke here')\n"
        "        os.abort()\n"
        "    print('end', seed, 'games', file=out, flush=True)\n")
    monkeypatch.chdir(tmp_path)
    summary = fuzzing.fuzz(tmp_path / "out", 1, 4, 5, None)
    assert summary["cases"] == 3 and summary["next"] == 5
    (finding,) = summary["findings"]
    assert "seed 2" in Path(finding).read_text() and "it broke here" in Path(finding).read_text()
