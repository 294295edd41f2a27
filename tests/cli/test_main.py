"""The command line."""

import os
import select
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest
import redis

from five.cli import commands
from five.cli.main import main
from tests.repository import ROOT


@pytest.mark.parametrize("words", [
    (), ("train",), ("eval",), ("anneal",), ("anneal", "start"), ("revert",), ("surgery",), ("surgery", "apply")])
def test_help_is_printed(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    # A percent sign in a help text is argparse's own.
    with pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(" ".join(("usage: five", *words)))


ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT / 'libs'}:{ROOT}"}


@pytest.mark.parametrize(("error", "line"), [
    (PermissionError(13, "Permission denied", "runs/trial/report.html"), "runs/trial/report.html: Permission denied"),
    (OSError(28, "No space left on device"), "No space left on device"),
    (IsADirectoryError(21, "Is a directory", ".page.0f.partial", None, "page"), "page: Is a directory"),
    (redis.ConnectionError("Error 2 connecting to unix socket"), "Error 2 connecting to unix socket"),
    (TimeoutError("the run did not start"), "the run did not start")])
def test_failures_of_files_and_stores_are_one_line(error: Exception, line: str, monkeypatch: pytest.MonkeyPatch,
                                                   capsys: pytest.CaptureFixture[str]) -> None:
    def fail(arguments: object) -> int:
        raise error

    monkeypatch.setattr(commands, "run", fail)
    assert main(["scale"]) == 2 and capsys.readouterr().err == f"five scale: {line}\n"


def test_argument_that_is_not_utf8_is_one_line(monkeypatch: pytest.MonkeyPatch,
                                               capsys: pytest.CaptureFixture[str]) -> None:
    """Text of a terminal in ISO 8859-1: "grün", as Python decodes it."""
    monkeypatch.setenv("FIVE_OPERATOR_TOKEN", "token")
    assert main(["stop", "--url", "http://127.0.0.1:9", "--reason", "gr\udcfcn"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("five stop: ") and "gr\\udcfcn" in error and error.endswith("set the terminal to UTF-8\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk_under_standard_output_is_one_line() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([sys.executable, "-m", "five.cli.main", "config", "learning"], stdout=full,
                              stderr=subprocess.PIPE, env=ENVIRONMENT)
    assert (done.returncode, done.stderr) == (2, b"five config: No space left on device\n")


def test_closed_pipe_is_not_an_error() -> None:
    """Simulates `five config learning | head -1`."""
    program = subprocess.Popen([sys.executable, "-m", "five.cli.main", "config", "learning"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=ENVIRONMENT)
    assert program.stdout is not None and program.stderr is not None
    program.stdout.close()
    assert program.wait(60) == 1 and program.stderr.read() == b""


def test_lines_reach_a_pipe_before_the_command_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """`five play --agent` prints the link to its page and serves it until Ctrl-C."""
    read, write = os.pipe()
    received: list[bytes] = []

    def serve(arguments: object) -> int:
        print("the link")
        received.append(os.read(read, 100) if select.select([read], [], [], 0)[0] else b"")
        return 0

    monkeypatch.setattr(commands, "run", serve)
    with open(write, "w", encoding="utf-8") as pipe, redirect_stdout(pipe):
        assert main(["agents"]) == 0
    os.close(read)
    assert received == [b"the link\n"]
