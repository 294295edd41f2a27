"""Decisions of a group are begun a step ahead, and every rank still takes, pauses and ends with the same step."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from five.local.cluster import free_ports

STEPS_PER_VERSION = 8
TRAIN = """
import json, os, sys, threading, time
from hashlib import sha256
from pathlib import Path
import torch
from five.services.optimizer import process_group
from five.services.optimizer.process_group import join
rank = int(os.environ["RANK"])
from five.services.optimizer.process_group import OptimizerGroup
from tests.services.optimizer_cases import StateInMemory, Versions, stored_segment, training

group = join(torch.device("cpu"))
trace = []
begin = OptimizerGroup.begin_all_ranks
def traced(self, *here):
    end = begin(self, *here)
    trace.append("begin")
    def ended():
        result = end()
        trace.append("end")
        return result
    return ended
OptimizerGroup.begin_all_ranks = traced

client = StateInMemory()
run = training(Path(sys.argv[1]), Versions(), client)
run.config = run.config.model_copy(update={"gradient_steps_per_iteration": 8})
run.group = group
run.learner.all_reduce = group.reduce
step = run.learner.train_step
def train_step(*arguments):
    trace.append("step")
    return step(*arguments)
run.learner.train_step = train_step
run.start()

ending = threading.Event()
def feed():
    number = 0
    while not ending.is_set():
        if run.intake.may_admit():
            run.intake.admit(stored_segment(f"{rank}-{number}", version=run.version, seed=1000 * rank + number))
            number += 1
        else:
            time.sleep(0.001)
feeder = threading.Thread(target=feed)
feeder.start()

paused_at = []
def stopping():
    steps = run.learner.gradient_steps
    if rank == 1 and steps >= 11 and not paused_at:
        paused_at.append(steps)
        client.playing = False
        threading.Timer(0.5, lambda: setattr(client, "playing", True)).start()
    return rank == 1 and steps >= 37
run.run(stopping)
ending.set()
feeder.join()
digest = sha256()
for name, tensor in sorted(run.learner.state_dict().items()):
    digest.update(name.encode() + tensor.numpy().tobytes())
ahead = sum(trace[i:i + 3] == ["begin", "step", "end"] for i in range(len(trace)))
print(json.dumps([run.learner.gradient_steps, run.version, digest.hexdigest(), ahead, trace.count("step")]), flush=True)
process_group.leave(group)
"""


def run_ranks(script: str, *arguments: str) -> list[tuple[int, str, str]]:
    """Run the script as two ranks of a group; return exit code, output and errors of each."""
    (port,) = free_ports(1)
    processes = [subprocess.Popen(
        [sys.executable, "-c", script, *arguments], cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": "libs:.", "RANK": str(rank), "WORLD_SIZE": "2",
             "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in range(2)]
    try:
        found = [process.communicate(timeout=100) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [(process.returncode, out, errors) for process, (out, errors) in zip(processes, found, strict=True)]


@pytest.mark.runs
@pytest.mark.timeout(120)
def test_ranks_take_the_same_steps_with_decisions_begun_ahead(tmp_path: Path) -> None:
    states: list[Any] = []
    for code, out, errors in run_ranks(TRAIN, str(tmp_path)):
        assert code == 0, errors
        states.append(json.loads(out.splitlines()[-1]))
    assert states[0][:3] == states[1][:3]
    steps, version, _, ahead, taken = states[0]
    assert 37 <= steps == taken <= 39 and version == steps // STEPS_PER_VERSION
    # The first six of a version's eight steps begin the next one's decision; a pause and the end cost some.
    assert ahead >= 0.5 * steps and ahead == states[1][3]
