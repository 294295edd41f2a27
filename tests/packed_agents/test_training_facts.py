"""Facts of a run for an agent's card: from the run's folder, and from a person where it lacks them."""

import json
from pathlib import Path

import pytest

from five.local.run_folder import RunFolder
from five.local.run_origin import RunOrigin
from five.packed_agents.errors import AgentUnavailable
from five.packed_agents.training_facts import training_facts
from tests.packed_agents.tiny_agent import ended_run

VERSIONS = [{"version": v, "minutes": 30.0 * v, "hero_steps": 1e6 * v} for v in (1, 2, 5)]


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = ended_run(tmp_path).folder
    RunOrigin("five train --preset laptop-1v1", "0123abc", 2).save(folder.origin)
    folder.records.write_text(json.dumps({"versions": VERSIONS, "ratings": []}))
    return folder


def test_facts_come_from_the_runs_folder(run: RunFolder, tmp_path: Path) -> None:
    config = ended_run(tmp_path / "other").config
    found = training_facts(run, config, 3, {})
    assert (found.command, found.commit, found.hardware) == ("five train --preset laptop-1v1", "0123abc",
                                                             "2 cores, no GPU")
    assert (found.version, found.hero_steps, found.hours, found.cost) == (3, 2_000_000, 1.0, "2.0 core-hours")
    assert found.seeds == [config.seed] and found.parent == ""


def test_time_between_two_trainings_is_no_training(run: RunFolder, tmp_path: Path) -> None:
    """Half an hour, a week without the run, and another half an hour."""
    rows = [{"version": 1, "minutes": 30.0, "hero_steps": 1e6, "seconds": 1800.0},
            {"version": 2, "minutes": 10_140.0, "hero_steps": 2e6, "seconds": 1800.0}]
    run.records.write_text(json.dumps({"versions": rows, "ratings": []}))
    found = training_facts(run, ended_run(tmp_path / "other").config, 2, {})
    assert (found.hours, found.cost) == (1.0, "2.0 core-hours")
    run.records.write_text(json.dumps({"versions": rows, "ratings": [], "stopped_seconds": 900.0}))
    assert training_facts(run, ended_run(tmp_path / "third").config, 2, {}).hours == 0.75  # before the first row


def test_progress_of_an_older_version_is_that_of_the_point_before_it(run: RunFolder, tmp_path: Path) -> None:
    older = [{"version": v, "minutes": 60.0 * v, "stopped_seconds": 900.0 * v, "hero_steps": 1e5 * v} for v in (1, 3)]
    rows = [{"version": 50, "minutes": 9e4, "hero_steps": 9e9}]
    run.records.write_text(json.dumps({"versions": rows, "ratings": [], "older": older}))
    found = training_facts(run, ended_run(tmp_path / "other").config, 4, {})
    assert (found.hero_steps, found.hours) == (300_000, 2.25)


def test_a_person_may_correct_them(run: RunFolder, tmp_path: Path) -> None:
    config = ended_run(tmp_path / "other").config
    found = training_facts(run, config, 2, {"command": "make train", "hours": 0.5}, "a cup of coffee")
    assert (found.command, found.hours, found.hero_steps, found.cost) == ("make train", 0.5, 2_000_000,
                                                                          "a cup of coffee")


def test_gpus_and_the_parent_are_named(run: RunFolder, tmp_path: Path) -> None:
    config = ended_run(tmp_path / "other").config
    RunOrigin("five train", "0123abc", 16, ("NVIDIA H100",), "older", "ab" * 32).save(run.origin)
    found = training_facts(run, config, 5, {})
    assert (found.hardware, found.cost, found.parent) == ("16 cores, NVIDIA H100", "2.5 GPU-hours",
                                                          "older (abababababababab)")


def test_missing_facts_are_named_by_their_options(run: RunFolder, tmp_path: Path) -> None:
    config = ended_run(tmp_path / "other").config
    run.origin.unlink()
    run.records.unlink()
    with pytest.raises(AgentUnavailable, match="add --trained-by, --commit, --hero-steps, --hours$"):
        training_facts(run, config, 5, {"hardware": "2 cores"})
    run.records.write_text("[]")
    with pytest.raises(AgentUnavailable, match=r"records.json is not the data of a report"):
        training_facts(run, config, 5, {})
    with pytest.raises(ValueError, match=r"origin.json is not a run's origin"):
        run.origin.write_text("{}")
        training_facts(run, config, 5, {})
