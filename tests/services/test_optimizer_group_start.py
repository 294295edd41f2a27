"""Start of a group: rank 0 reads the checkpoint, however slowly, and the others get the same state to the bit."""

import re
import time
from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

from five.services.optimizer import process_group
from five.services.optimizer.process_group import SINGLE_OPTIMIZER, join, leave
from tests.services.forked_ranks import run_two_ranks
from tests.services.optimizer_cases import Versions, feed, training, until

TIMEOUT_SECONDS = 3.0


def starting(folder: Callable[[int], Path], load_seconds: float) -> Callable[[int], Any]:
    """Return the start of a rank, which returns its state, or its error. Reading the checkpoint takes that long."""
    def start(rank: int) -> Any:
        run = training(folder(rank), Versions())
        run.group = join(torch.device("cpu"), start_seconds=60)
        torch.manual_seed(rank)
        load = run.checkpoints.load

        def load_slowly(version: int) -> Any:
            assert rank == 0, "only rank 0 reads the checkpoint"
            time.sleep(load_seconds)
            return load(version)

        run.checkpoints.load = load_slowly  # type: ignore[method-assign]
        try:
            run.start()
        except RuntimeError as error:
            dist.destroy_process_group()  # or the other rank would wait for this one
            return str(error)
        digest = sha256(repr(run.learner.extra()).encode())
        for name, tensor in sorted(run.learner.state_dict().items()):
            digest.update(name.encode() + tensor.numpy().tobytes())
        leave(run.group)
        pacer = run.intake.pacer.state_dict()
        return run.version, run.learner.gradient_steps, run.warm_up_until, pacer, digest.digest()

    return start


@pytest.mark.parametrize("here", [0, 1])
def test_every_rank_gets_the_state_that_rank_0_reads(tmp_path: Path, here: int, monkeypatch: pytest.MonkeyPatch
                                                     ) -> None:
    monkeypatch.setattr(process_group, "CHUNK_BYTES", 10_000)
    monkeypatch.setattr(process_group, "TIMEOUT", timedelta(seconds=TIMEOUT_SECONDS))
    before = training(tmp_path, Versions())
    before.start()
    before.warm_up_until = 5
    feed(before, 4)
    until(before, 1)
    # Once reading takes longer than a collective operation may.
    first, second = run_two_ranks(starting(lambda rank: tmp_path, TIMEOUT_SECONDS + 0.5 if here else 0.0), here)
    assert first == second and first[:3] == (1, 2, 5)


def test_storage_that_is_not_shared_is_refused(tmp_path: Path) -> None:
    _, error = run_two_ranks(starting(lambda rank: tmp_path / str(rank), 0.0), 1)
    assert "optimizer 1 does not see the checkpoint of optimizer 0" in error and "blobs.url" in error


def test_rank_0_that_does_not_start_in_time_is_named() -> None:
    def work(rank: int) -> str:
        group = join(torch.device("cpu"), start_seconds=0.2)
        if rank == 0:
            time.sleep(0.5)
            return ""
        try:
            group.wait_for_first()
        except RuntimeError as error:
            return str(error)
        return "it has not waited"

    error = run_two_ranks(work, 1)[1]
    assert re.search(r"optimizer 0 has not started after \d+ s .*start_timeout_seconds 0\.2", error)


def test_single_optimizer_shares_nothing() -> None:
    SINGLE_OPTIMIZER.wait_for_first()
    assert SINGLE_OPTIMIZER.begin_all_ranks(True, False)() == [True, False]
