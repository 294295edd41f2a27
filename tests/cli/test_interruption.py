"""Signals of `five train`: recorded, raised where asked for, and hurried by a second one."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from five.cli import commands
from five.cli.interruption import Interruption
from five.cli.main import main


@pytest.mark.usefixtures("own_handlers")
def test_first_signal_ends_a_wait_and_second_hurries() -> None:
    with Interruption() as interruption:
        assert not interruption.wait(0.01) and interruption.number is None
        threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()
        began = time.monotonic()
        assert interruption.wait(60) and time.monotonic() - began < 30
        assert interruption.number == signal.SIGTERM and not interruption.hurried()
        os.kill(os.getpid(), signal.SIGINT)
        assert interruption.wait(0) and interruption.hurried() and interruption.number == signal.SIGTERM
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # the process is ending


@pytest.mark.usefixtures("own_handlers")
def test_signal_raises_in_a_block_and_once() -> None:
    with Interruption() as interruption:
        with pytest.raises(KeyboardInterrupt) as raised, interruption.raising():
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        assert raised.value.args == (signal.SIGTERM,)
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt), interruption.raising():
            pytest.fail("a signal from before the block raises at its start")
    with Interruption() as interruption, pytest.raises(KeyboardInterrupt), interruption.raising():
        with suppress(BaseException):  # as a destructor does
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)


@pytest.mark.usefixtures("own_handlers")
def test_a_closed_terminal_ends_a_wait_unless_ignored() -> None:
    with Interruption(signal.SIGHUP) as interruption:
        os.kill(os.getpid(), signal.SIGHUP)
        assert interruption.wait(60) and interruption.number == signal.SIGHUP
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    with Interruption(signal.SIGHUP) as interruption:
        os.kill(os.getpid(), signal.SIGHUP)
        assert not interruption.wait(0.1)


def test_handlers_are_restored_without_a_signal() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with Interruption():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


@pytest.mark.parametrize(("raised", "status", "name"), [
    (KeyboardInterrupt(), 130, "SIGINT"), (KeyboardInterrupt(signal.SIGTERM), 143, "SIGTERM")])
def test_interrupted_command_ends_in_one_line(raised: KeyboardInterrupt, status: int, name: str,
                                              monkeypatch: pytest.MonkeyPatch,
                                              capsys: pytest.CaptureFixture[str]) -> None:
    def run(arguments: object) -> int:
        raise raised

    monkeypatch.setattr(commands, "run", run)
    assert main(["ladder"]) == status
    assert capsys.readouterr().err == f"five ladder: ended by {name}\n"


def test_import_that_swallows_exceptions_ends_too() -> None:
    program = """
import os, signal, sys, time
from five.cli.interruption import default_action
with default_action():
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    except BaseException:
        pass
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGINT and done.stderr == b""
