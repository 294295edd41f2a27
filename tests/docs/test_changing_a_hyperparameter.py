"""docs/changing-a-hyperparameter.md: its commands, run against a served controller."""

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from five.cli.main import main
from five.local.run_folder import ClusterInfo, RunFolder
from five.run.load import load
from rapid.store.state import Status
from tests.repository import ROOT
from tests.services.live_controller import OPERATOR, RUN, LiveController, live

PAGE = (ROOT / "docs/changing-a-hyperparameter.md").read_text()
BLOCKS = re.findall(r"^```\n(.*?)^```", PAGE, re.M | re.S)


@pytest.fixture
def rest(redis_client: redis.Redis, redis_url: str) -> Iterator[LiveController]:
    with live(redis_url) as found:
        yield found


def test_page_steps_run(rest: LiveController, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                        capsys: pytest.CaptureFixture[str]) -> None:
    rest.state.transition(Status.RUNNING, "test")
    run = RunFolder(tmp_path / "runs" / RUN)
    run.create()
    run.config.write_text("name: trial\n")
    (run.path / "operator_token").write_text(OPERATOR)
    run.announce(ClusterInfo(os.getpid(), rest.url, "", "", ""))
    monkeypatch.chdir(tmp_path)
    for line in "".join(BLOCKS).splitlines():
        name, *words = shlex.split(line)
        history = rest.ask("GET", "/v1/schedules/history").json()["items"]
        assert name == "five"
        assert main([history[0]["id"] if word == "ID" else word for word in words]) == 0, capsys.readouterr().err
    changes = [e.what for e in rest.state.events.read() if e.what.startswith("schedules.")]
    assert len(changes) == 2, f"one change and one that takes it back; the dry run changed nothing: {changes}"
    assert rest.ask("GET", "/v1/schedules/learning_rate").json()["schedule"] == {
        "initial": 5e-5, "ramps": [], "unit": "versions"}


@pytest.mark.parametrize("preset", ["laptop-1v1", "laptop-5v5"])
def test_page_change_takes_several_versions_of_a_laptop(preset: str) -> None:
    config = load(preset)
    assert config.schedules.learning_rate.unit == "hero_steps"
    learning = config.learning
    version = learning.batch_samples * learning.lstm_unroll_length * learning.gradient_steps_per_iteration
    lengths = [int(length) for length in re.findall(r"--over (\d+)", PAGE)]
    assert lengths and all(length >= 5 * version for length in lengths)


def test_page_names_existing_keys() -> None:
    from five.run.reference import reference

    known = {key.path for section in reference() for key in section.keys}
    named = set(re.findall(r"\b((?:learning|buffer|rewards|league)\.\w+)", PAGE))
    assert named and named <= known
