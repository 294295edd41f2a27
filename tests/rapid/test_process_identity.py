"""Process identity: whether the process that wrote it still lives."""

import json
import os
import subprocess
import sys
from pathlib import Path

from rapid.process_identity import ProcessIdentity, machine_id, started_at

ROOT = Path(__file__).parents[2]
WHO = """
import json, sys
from rapid.process_identity import ProcessIdentity
print(json.dumps(ProcessIdentity.own()), flush=True)
sys.stdin.readline()
"""
AGAIN = """
import json, os, sys
from rapid.process_identity import ProcessIdentity
before = os.environ.get("BEFORE")
if before is None:
    os.environ["BEFORE"] = json.dumps(ProcessIdentity.own())
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
was, now = ProcessIdentity(*json.loads(before)), ProcessIdentity.own()
assert was[:3] == now[:3] and was.life != now.life, (was, now)
print(was.is_dead(), now.is_dead())
"""


def test_own_process_is_alive() -> None:
    me = ProcessIdentity.own()
    assert me == ProcessIdentity.own() and me.pid == os.getpid() and not me.is_dead()
    assert ProcessIdentity(*json.loads(json.dumps(me))) == me


def test_ended_process_is_dead_even_as_a_zombie() -> None:
    process = subprocess.Popen([sys.executable, "-c", WHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT,
                               env={"PYTHONPATH": "libs"})
    assert process.stdout is not None
    found = ProcessIdentity(*json.loads(process.stdout.readline()))
    assert found.pid == process.pid and not found.is_dead()
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a zombie until it is reaped
    assert started_at(process.pid) == "" and found.is_dead()
    process.wait()
    assert found.is_dead()


def test_reused_pid_is_another_process() -> None:
    parent = os.getppid()
    reused = ProcessIdentity(machine_id(), parent, "1" if started_at(parent) != "1" else "2", "x")
    assert reused.is_dead()
    assert not ProcessIdentity(machine_id(), parent, started_at(parent), "x").is_dead()


def test_process_of_another_machine_is_never_dead() -> None:
    assert not ProcessIdentity("another-boot/pid:[1]", 2 ** 22 + 1, "1", "x").is_dead()
    assert not ProcessIdentity("", 2 ** 22 + 1, "1", "x").is_dead()


def test_exec_ends_the_former_life() -> None:
    done = subprocess.run([sys.executable, "-c", AGAIN], capture_output=True, text=True, cwd=ROOT, check=False,
                          env={"PYTHONPATH": "libs"})
    assert (done.stdout, done.stderr) == ("True False\n", "")
