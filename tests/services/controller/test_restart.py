"""The controller as a real process: its REST port during a restart, and the events that it merges."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from rapid.embedded_redis import EmbeddedRedis, RunningRedis
from rapid.store.leases import Instance
from rapid.store.state import RunState
from tests.waiting import eventually

RUN = "trial"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningRedis]:
    with EmbeddedRedis(tmp_path / "redis", append_only=False).start() as found:
        yield found


@pytest.fixture
def controller(tmp_path: Path, server: RunningRedis) -> Iterator["subprocess.Popen[bytes]"]:
    config = tmp_path / "run.yaml"
    config.write_text(json.dumps({
        "preset": "laptop-1v1", "name": RUN, "store": {"state_url": server.url, "params_url": server.url},
        "rpc": {"require_token": False},
        "services": {"evaluator": {"enabled": False}, "controller": {"host": "127.0.0.1", "auth": False}},
        "lifecycle": {"heartbeat_seconds": 0.2, "lease_seconds": 5, "poll_seconds": 0.1}}))
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "five.services.controller", "--config", str(config), "--port", "0",
             "--metrics-port", "0"], stdout=log, stderr=subprocess.STDOUT, env=dict(os.environ))
    yield process
    process.kill()
    process.wait()
    print((tmp_path / "log").read_text())


def test_no_connection_is_refused_during_the_restart(controller: "subprocess.Popen[bytes]", server: RunningRedis
                                                     ) -> None:
    state = RunState(redis.Redis.from_url(server.url), RUN)

    def announced(revision: int) -> Instance | None:
        assert controller.poll() is None
        return next((i for i in state.services("controller") if i.address and i.revision >= revision), None)

    first = eventually(lambda: announced(1), 60)
    host, _, port = first.address.rpartition(":")
    stopped, refused = threading.Event(), list[Any]()

    def connect() -> None:
        while not stopped.is_set():
            try:
                socket.create_connection((host, int(port)), 10).close()
            except OSError as error:
                refused.append(error)
            time.sleep(0.1)

    connecting = threading.Thread(target=connect)
    connecting.start()
    before = state.record()
    assert before is not None
    state.set_record(before, before.changed(new_epoch=False, game=before.game), "test", "record.set", {})
    second = eventually(lambda: announced(before.revision + 1), 60)
    stopped.set()
    connecting.join()
    assert second.address == first.address and second.life != first.life and not refused


def test_events_of_services_are_merged_until_the_end(controller: "subprocess.Popen[bytes]", server: RunningRedis
                                                     ) -> None:
    client = redis.Redis.from_url(server.url)
    state, optimizer = RunState(client, RUN), RunState(client, RUN, "optimizer")
    eventually(lambda: [i for i in state.services("controller") if i.address], 60)
    optimizer.events.append("optimizer-0", "optimizer.resumed", {"version": 7})
    event = eventually(lambda: [e for e in state.events.read() if e.who == "optimizer-0"], 10)[0]
    assert event.what == "optimizer.resumed" and int(event.id.partition("-")[0]) / 1000 - event.at < 3
    optimizer.events.append("optimizer-0", "checkpoint.committed", {"version": 8})
    controller.terminate()
    controller.wait(60)
    assert state.events.last(1)[0].what == "checkpoint.committed"
