"""Numbers and names of the command line that no command can use."""

import os
import pty
import sys
from pathlib import Path

import pytest

from five.cli.commands import parser
from five.cli.main import main
from five.cli.run_preparation import prepare
from five.cli.run_selection import confirm
from five.local.rest_client import ApiError
from five.run.load import ConfigError


@pytest.mark.parametrize("words", [
    "train --minutes 0", "train --minutes -1", "train --minutes nan", "train --minutes inf", "train --minutes x",
    "train --seed -1", "train --seed 99999999999999999999999", "train --seed 1_0", "train --seed 1.0",
    "eval --games 0", "eval --seed -1", "games --games -1", "games --threads 100000", "ladder --games -2",
    "eval --version -2", "draft --version -2", "watch --speed 0", "watch --seconds nan",
    "surgery rehearse plan.yaml --games 0", "draft --threads 0"])
def test_unusable_number_is_refused_with_its_option(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert f"argument {next(word for word in words.split() if word.startswith('--'))}: " in said


def test_usable_numbers_are_parsed() -> None:
    found = parser().parse_args(["train", "--minutes", "0.5", "--seed", str(2**63 - 1)])
    assert (found.minutes, found.seed) == (0.5, 2**63 - 1)
    assert parser().parse_args(["games", "--games", "0", "--seed", "007"]).seed == 7


@pytest.mark.parametrize("name", ["My Run", "../elsewhere", "-x", "a" * 64, "a/b"])
def test_invalid_name_leaves_no_folder(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                       capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "inner"
    root.mkdir()
    monkeypatch.chdir(root)
    assert main(["train", f"--name={name}"]) == 2
    assert "name" in capsys.readouterr().err
    assert [path.name for path in tmp_path.rglob("*")] == ["inner"]


def test_numbered_name_may_be_too_long(tmp_path: Path) -> None:
    """Without --name a second run of a preset gets its name with a number."""
    (tmp_path / ("a" * 63)).mkdir()
    with pytest.raises(ConfigError, match="63 characters at most"):
        prepare("laptop-1v1", ["name=" + "a" * 63], None, None, root=tmp_path)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(("override", "words"), [
    ("model.lstm=65536", "model: .* parameters, at most 1,000,000,000 are allowed"),
    ("game.hero_pool=[nevermor]", "hero_pool.*did you mean 'nevermore'"),
    ("game.observation.omit=[nothing]", "omit: 'nothing' is not a field")])
def test_run_that_cannot_start_leaves_no_folder(override: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        prepare("laptop-1v1", [override], "trial", None, root=tmp_path)
    assert not list(tmp_path.iterdir())


def test_confirmation_without_a_terminal_names_the_flag() -> None:
    with pytest.raises(ApiError, match="--yes"):
        confirm("revert?")


@pytest.mark.parametrize(("answer", "yes"), [("y\n", True), ("Yes\n", True), ("\n", False), ("\x04", False)])
def test_confirmation_on_a_terminal(answer: str, yes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        os.write(ours, answer.encode())
        assert confirm("revert?") is yes
    os.close(ours)
