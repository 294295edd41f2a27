"""Start of a group: rank 0 reads the checkpoint, however slowly, and the others get the same state to the bit."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from five.local.cluster import free_ports
from five.services.optimizer.process_group import SINGLE_OPTIMIZER
from tests.services.optimizer_cases import Versions, feed, training, until

HEAD = """
import json, os, sys, time
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
import torch
from five.services.optimizer import process_group
from five.services.optimizer.process_group import join
rank = int(os.environ["RANK"])
"""
STATE = HEAD + """
from tests.services.optimizer_cases import Versions, training
process_group.CHUNK_BYTES = 10_000
process_group.TIMEOUT = timedelta(seconds=4)
group = join(torch.device("cpu"), start_seconds=60)
run = training(Path(sys.argv[1]), Versions())
run.group = group
torch.manual_seed(rank)
load = run.checkpoints.load
def load_slowly(version):
    assert rank == 0, "only rank 0 reads the checkpoint"
    time.sleep(6)  # longer than a collective operation may take
    return load(version)
run.checkpoints.load = load_slowly
run.start()
digest = sha256(repr(run.learner.extra()).encode())
for name, tensor in sorted(run.learner.state_dict().items()):
    digest.update(name.encode() + tensor.numpy().tobytes())
print(json.dumps([run.version, digest.hexdigest(), run.intake.pacer.state_dict(), run.warm_up_until]), flush=True)
process_group.leave()
"""
LATE = HEAD + """
group = join(torch.device("cpu"), start_seconds=1)
if rank == 0:
    time.sleep(8)
    os._exit(0)
try:
    group.wait_for_first()
except RuntimeError as error:
    print(error, flush=True)
    os._exit(3)
"""
DAMAGED = HEAD + """
from five.services.optimizer.process_group import dist
group = join(torch.device("cpu"))
sent = dist.broadcast
def broadcast(tensor, *args, **more):
    sent(tensor, *args, **more)
    if rank == 1 and tensor.dtype == torch.uint8:
        tensor[5] += 1
dist.broadcast = broadcast
try:
    group.broadcast_bytes([memoryview(bytes(100))] if rank == 0 else [])
except RuntimeError as error:
    print(error, flush=True)
    os._exit(3)
print("fine", flush=True)
"""


def run_ranks(script: str, *arguments: str, ranks: int = 2) -> list[tuple[int, str, str]]:
    """Run the script as the ranks of a group; return exit code, output and errors of each."""
    (port,) = free_ports(1)
    processes = [subprocess.Popen(
        [sys.executable, "-c", script, *arguments], cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": "libs:.", "RANK": str(rank), "WORLD_SIZE": str(ranks),
             "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in range(ranks)]
    try:
        found = [process.communicate(timeout=100) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [(process.returncode, out, errors) for process, (out, errors) in zip(processes, found, strict=True)]


@pytest.mark.timeout(120)
def test_every_rank_gets_the_state_that_rank_0_reads(tmp_path: Path) -> None:
    before = training(tmp_path, Versions())
    before.start()
    feed(before, 12)
    until(before, 3)
    states: list[Any] = []
    for code, out, errors in run_ranks(STATE, str(tmp_path), ranks=3):
        assert code == 0, errors
        states.append(json.loads(out.splitlines()[-1]))
    assert states[1] == states[0] and states[2] == states[0]
    assert states[0][0] == before.version and before.learner.gradient_steps > 0


@pytest.mark.timeout(120)
def test_rank_0_that_does_not_start_in_time_is_named() -> None:
    _, (code, out, errors) = run_ranks(LATE)
    assert code == 3, errors
    assert "optimizer 0 has not started after 1 s" in out and "start_timeout_seconds 1" in out


@pytest.mark.timeout(120)
def test_damaged_state_is_refused() -> None:
    (first, _, errors), (second, out, _) = run_ranks(DAMAGED)
    assert (first, second) == (0, 3), errors
    assert "optimizer 1 received other bytes" in out


@pytest.mark.timeout(120)
def test_storage_that_is_not_shared_is_refused(tmp_path: Path) -> None:
    script = STATE.replace("Path(sys.argv[1])", "Path(sys.argv[1]) / str(rank)").replace(
        "sleep(6)", "sleep(0)").replace("run.start()", """
try:
    run.start()
except RuntimeError as error:
    print(error, flush=True)
    os._exit(3)
""")
    code, out, errors = run_ranks(script, str(tmp_path))[1]
    assert code == 3, errors
    assert "optimizer 1 does not see the checkpoint of optimizer 0" in out and "blobs.url" in out


def test_single_optimizer_shares_nothing() -> None:
    SINGLE_OPTIMIZER.wait_for_first()
    assert SINGLE_OPTIMIZER.begin_all_ranks(True, False)() == [True, False]
