"""`five dotaservice`: games for foreign trainers, without a run."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from five.cli.commands import parser
from five.cli.dotaservice import configuration, overrides_of
from five.cli.main import main
from five.protos.valve import dotaservice_pb2 as pb
from tests.repository import ROOT
from tests.services.dotaservice_client import Client, game_config


def test_options_are_keys_of_the_configuration() -> None:
    given = parser().parse_args(["dotaservice", "--games", "3", "--port", "2000", "--host", "::",
                                 "--set", "services.dotaservice.bot=random", "--set", "game.patch=7.19"])
    config = configuration("", overrides_of(given))
    settings = config.services.dotaservice
    assert (settings.games, settings.port, settings.host, settings.bot) == (3, 2000, "::", "random")
    assert settings.threads == min(3, os.cpu_count() or 1) and config.game.patch == "7.19"


def test_games_may_share_a_thread() -> None:
    given = parser().parse_args(["dotaservice", "--games", "3", "--set", "services.dotaservice.threads=1"])
    assert configuration("", overrides_of(given)).services.dotaservice.threads == 1


def test_an_unknown_key_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dotaservice", "--set", "services.dotaservice.gams=3"]) == 2
    assert "did you mean 'games'?" in capsys.readouterr().err


def test_it_serves_until_interrupted(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "five.cli.main", "dotaservice", "--port", "0", "--games", "2"], cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'libs'}:{ROOT}"}, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT)
    try:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if found := re.search(r"serving games host=127\.0\.0\.1 ports=(\d+),(\d+)", line):
                break
        else:
            raise AssertionError("".join(lines))

        async def play(port: int) -> pb.Status:
            async with Client(port) as client:
                await client.reset(game_config())
                return (await client.observe()).status

        for port in found.groups():
            assert asyncio.run(play(int(port))) == pb.OK
        process.send_signal(signal.SIGINT)
        assert process.wait(120) in (0, 130)
    finally:
        process.kill()
        process.wait()


def test_a_taken_port_ends_it_with_a_message(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = subprocess.run([sys.executable, "-m", "five.cli.main", "dotaservice", "--port", str(port)], cwd=tmp_path,
                              env=os.environ | {"PYTHONPATH": f"{ROOT / 'libs'}:{ROOT}"}, capture_output=True,
                              text=True, timeout=240)
    assert done.returncode and f"cannot listen on 127.0.0.1:{port}" in done.stdout + done.stderr
