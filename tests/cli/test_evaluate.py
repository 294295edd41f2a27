"""`five eval` on an ended run: from its archive, in this process, sampled or greedy."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from dota.replay import Replay
from five.agent.model.policy import Policy
from five.cli.evaluate import Details, evaluate
from five.cli.main import main
from five.evaluation.archived_versions import ArchivedVersions, VersionNotArchived
from five.run.load import ConfigError
from tests.cli.test_ladder import ended_run

torch.set_num_threads(1)


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return, for each choice of a policy, whether it was the most probable one."""
    act, seen = Policy.act, list[bool]()

    def watched(self: Policy, *arguments: Any, greedy: bool = False, **options: Any) -> Any:
        seen.append(greedy)
        return act(self, *arguments, greedy=greedy, **options)

    monkeypatch.setattr(Policy, "act", watched)
    return seen


def test_ended_run_is_evaluated_from_its_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                 chosen: list[bool]) -> None:
    folder = ended_run(tmp_path)
    assert evaluate(folder, -1, "scripted", 3, 7, True) == 0
    outcome = json.loads(capsys.readouterr().out)
    assert chosen and not any(chosen)
    assert outcome["version"] == 4 and outcome["against"] == "scripted"
    assert outcome["games"] == outcome["won"] + outcome["lost"] + outcome["drawn"] == 4  # pairs: three become four
    low, high = outcome["win_rate_interval"]
    assert 0 <= low <= (outcome["won"] + 0.5 * outcome["drawn"]) / 4 <= high <= 1
    assert outcome["statistics"].keys() == outcome["opponent_statistics"].keys()
    assert outcome["mean_game_seconds"] == pytest.approx(2, abs=0.5)  # its games end by time
    Replay.load(outcome["replay"])
    # The same seed is the same match; nothing is left of it but the replay.
    assert evaluate(folder, 4, "scripted", 4, 7, True) == 0
    assert json.loads(capsys.readouterr().out) == outcome
    assert [path.name for path in (folder.path / "replays").iterdir()] == ["version-4-scripted-7.replay"]


def test_greedy_match_against_a_version_prints_text(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                    chosen: list[bool]) -> None:
    folder = ended_run(tmp_path)
    assert evaluate(folder, 4, "0", 1, 3, False, greedy=True) == 0
    out = capsys.readouterr().out
    assert chosen and all(chosen)  # both sides
    assert out.startswith("version 4 against 0: won ") and "of 2 games" in out and "95 %" in out
    replay = folder.path / "replays" / "version-4-version-0-3.replay"
    assert f"five watch {replay}" in out
    Replay.load(replay)


def test_only_the_evaluated_version_has_the_temperature(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                        capsys: pytest.CaptureFixture[str]) -> None:
    folder = ended_run(tmp_path / "runs")
    act, weights = Policy.act, list[torch.Tensor]()

    def watched(self: Policy, *arguments: Any, **options: Any) -> Any:
        if not any(self.heads.unit.weight.equal(weight) for weight in weights):
            weights.append(self.heads.unit.weight)
        return act(self, *arguments, **options)

    monkeypatch.setattr(Policy, "act", watched)
    monkeypatch.chdir(tmp_path)
    assert main(["eval", "--run", "trial", "--against", "0", "--games", "2", "--temperature", "0.5"]) == 0
    (newest, _), (first, _) = (ArchivedVersions(folder).load(version)[1].heads.unit.parameters() for version in (4, 0))
    assert len(weights) == 2 and weights[0].equal(newest / 0.5) and weights[1].equal(first)
    capsys.readouterr()
    for wrong in ("0", "-1", "nan", "1000", "--greedy"):
        with pytest.raises(SystemExit):
            main(["eval", "--run", "trial", "--temperature", "1" if wrong == "--greedy" else wrong, *(
                [wrong] if wrong == "--greedy" else [])])
        assert "--temperature" in capsys.readouterr().err


def test_eval_prints_how_heroes_died(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = ended_run(tmp_path)
    assert evaluate(folder, 4, "scripted", 2, 3, True, details=Details(deaths=True)) == 0
    outcome = json.loads(capsys.readouterr().out)
    ours, theirs = outcome["deaths"], outcome["opponent_deaths"]
    assert ours.keys() == theirs.keys() and ours["per_game"] == 0  # games of two seconds
    assert evaluate(folder, 4, "scripted", 2, 3, False, details=Details(deaths=True)) == 0
    out = capsys.readouterr().out
    assert re.search(r"deaths of a hero\n +a game +0\.0 +opponent +0\.0\n", out)
    assert re.search(r"enemies near it +- +opponent +-\n", out)
    assert evaluate(folder, 4, "scripted", 2, 3, False) == 0
    assert "deaths of a hero" not in capsys.readouterr().out


def test_eval_prints_what_heroes_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                      capsys: pytest.CaptureFixture[str]) -> None:
    folder = ended_run(tmp_path)
    used: dict[bool, dict[str, Any]] = {
        True: {"abilities": {"lion": {"lion_impale": 2.5}}, "items": {}},
        False: {"abilities": {"lion": {"lion_impale": 1.25, "lion_voodoo": 4.0}}, "items": {"tpscroll": 26.9}}}
    monkeypatch.setattr("five.evaluation.casts.CastRecorder.summarise", lambda self, of_first: used[of_first])
    assert evaluate(folder, 4, "scripted", 2, 3, True, details=Details(casts=True)) == 0
    outcome = json.loads(capsys.readouterr().out)
    assert [outcome["casts"], outcome["opponent_casts"]] == [used[True], used[False]]
    assert evaluate(folder, 4, "scripted", 2, 3, False, details=Details(casts=True)) == 0
    out = capsys.readouterr().out
    assert re.search(r"casts of lion a game\n +lion_impale +2\.5 +opponent +1\.2\n +lion_voodoo +0\.0 +opponent +4\.0\n"
                     r"items used by a hero a game\n +tpscroll +0\.0 +opponent +26\.9\n", out)


def test_eval_errors_name_the_reason(tmp_path: Path) -> None:
    folder = ended_run(tmp_path)
    with pytest.raises(ConfigError, match=r"--against 'nobody'.*scripted"):
        evaluate(folder, 4, "nobody", 2, 0, False)
    for version, against in ((3, "random"), (4, "3")):
        with pytest.raises(VersionNotArchived, match="version 3 .* not archived; nearest archived versions: 0, 4"):
            evaluate(folder, version, against, 2, 0, False)


def test_eval_command_finds_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                    capsys: pytest.CaptureFixture[str]) -> None:
    folder = ended_run(tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    assert main(["eval", "--run", "trial", "--against", "random", "--games", "2", "--json"]) == 0
    outcome = json.loads(capsys.readouterr().out)
    assert outcome["games"] == 2 and Path(outcome["replay"]).resolve().is_relative_to(folder.path.resolve())
