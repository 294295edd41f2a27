"""The command line."""

import os
import subprocess
import sys

import pytest

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


def test_closed_pipe_is_not_an_error() -> None:
    """Simulates `five config learning | head -1`."""
    program = subprocess.Popen([sys.executable, "-m", "five.cli.main", "config", "learning"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": f"{ROOT / 'libs'}:{ROOT}"})
    assert program.stdout is not None and program.stderr is not None
    program.stdout.close()
    assert program.wait(60) == 1 and program.stderr.read() == b""
