"""Parallel trials of an ablation, each in a process bound to its own share of the processors.

    python -m five.ablation.parallel FOLDER TRIAL     # one trial

Trials that share no processor take no time from each other, so that variants compare as on a smaller machine.
"""

import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

from five.ablation.config import AblationConfig, Trial
from five.ablation.runner import Ablation, TrialFailed
from five.run.load import ConfigError


def shares(parallel_runs: int) -> list[set[int]]:
    """Return this process's processors in ``parallel_runs`` parts of nearly equal size.

    One unbounded part if the system cannot bind processes. Raises ConfigError for fewer processors than parts.
    """
    if not hasattr(os, "sched_getaffinity"):
        return [set()] * parallel_runs
    there = sorted(os.sched_getaffinity(0))
    if parallel_runs > len(there):
        raise ConfigError(f"parallel_runs {parallel_runs}: at most one run for each of this process's "
                          f"{len(there)} processors is allowed")
    bounds = [i * len(there) // parallel_runs for i in range(parallel_runs + 1)]
    return [set(there[a:b]) for a, b in pairwise(bounds)]


def run(ablation: Ablation, say: Callable[[str], None] = print, ended: Callable[[], None] = lambda: None) -> None:
    """Run the missing trials.

    ``say`` receives each trial's lines, prefixed by its name. ``ended`` is called after each finished trial, by one
    thread at a time. After a failed trial no further one starts, running ones end, and TrialFailed holds the error.
    Raises ConfigError for more parallel trials than processors.
    """
    ablation.open()
    parts = shares(ablation.config.parallel_runs)
    trials = deque(ablation.missing())
    ended_lock = threading.Lock()
    if trials:
        ablation.anchors(say)  # once, before the trials need them

    def work(share: set[int]) -> None:
        if share:
            os.sched_setaffinity(0, share)  # affinity of this thread, inherited by its processes
        while True:
            try:
                trial = trials.popleft()
            except IndexError:
                return
            try:
                _run_one(ablation.folder, trial, say)
                with ended_lock:
                    ended()
            except BaseException:
                trials.clear()
                raise

    with ThreadPoolExecutor(len(parts)) as workers:
        try:
            for worker in [workers.submit(work, share) for share in parts]:
                worker.result()
        finally:
            trials.clear()


def _run_one(folder: Path, trial: Trial, say: Callable[[str], None]) -> None:
    last: deque[str] = deque(maxlen=25)
    with subprocess.Popen([sys.executable, "-m", __name__, str(folder.resolve()), trial.name], text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}) as process:
        assert process.stdout is not None
        for line in process.stdout:
            last.append(line)
            say(f"{trial.name}: {line.rstrip()}")
    if process.returncode != 0:
        raise TrialFailed(f"{trial.name} ended with status {process.returncode}:\n{''.join(last).rstrip()}")


def main(arguments: Sequence[str]) -> int:
    """Run one trial of an ablation's folder. Return the exit status: 1 if it failed, with the error on stderr."""
    folder, name = arguments
    text = (Path(folder) / "ablation.json").read_text(encoding="utf-8")
    config = AblationConfig.model_validate(json.loads(text)["config"])
    try:
        Ablation(config, Path(folder)).run_trial(Trial.named(name), lambda text: print(text, flush=True))
    except (TrialFailed, ConfigError, ValueError) as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
