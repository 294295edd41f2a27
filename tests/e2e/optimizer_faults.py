"""Faults that tests inject into a running optimizer.

Every process of a run imports `faulty_optimizer/sitecustomize.py`, which calls `install` in an optimizer for which a
test called `inject_faults`. A faults file, read at every job and version, then says what happens:

    transform fail          the job fails; another attempt may be made
    check refuse            the job is refused
    publish die             kill -9 before the job, at its first attempt
    publish die-after       kill -9 after the job, before it is completed
    checkpoint wait 5       the job takes five seconds longer
    version weights FILE    every version has the parameters in FILE, a NumPy archive by name
"""

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

VARIABLE = "FIVE_TEST_OPTIMIZER_FAULTS"


def inject_faults(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    """Make the optimizers of runs started by this test read faults from ``file``."""
    monkeypatch.setenv(VARIABLE, str(file))


def install(file: Path) -> None:
    """Patch the optimizer's job runner and version step in this process."""
    from five.services.optimizer.surgery_worker import JobRefused, SurgeryWorker
    from five.services.optimizer.training import Training

    def fault(kind: str) -> list[str]:
        lines = file.read_text().splitlines() if file.exists() else []
        return next((words[1:] for line in lines if (words := line.split()) and words[0] == kind), [])

    run_job, make_version = SurgeryWorker._run_job, Training._make_version

    def faulty_run_job(self: SurgeryWorker, job: Any, authority: Any) -> Any:
        match fault(job.kind):
            case ["fail"]:
                raise RuntimeError("injected fault")
            case ["refuse"]:
                raise JobRefused("injected fault")
            case ["die"] if job.attempt == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            case ["wait", seconds]:
                time.sleep(float(seconds))
        answer = run_job(self, job, authority)
        if fault(job.kind) == ["die-after"] and job.attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    def faulty_make_version(self: Training, hyper: Any) -> None:
        match fault("version"):
            case ["weights", archive]:
                parameters = self.learner.policy.state_dict()
                with np.load(archive, allow_pickle=False) as arrays:
                    for name, array in arrays.items():
                        parameters[name].copy_(torch.from_numpy(array))
        make_version(self, hyper)

    SurgeryWorker._run_job = faulty_run_job  # type: ignore[method-assign]
    Training._make_version = faulty_make_version  # type: ignore[method-assign]
