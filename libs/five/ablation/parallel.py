"""Parallel trials of an ablation, each in a process bound to its own share of the processors.

    python -m five.ablation.parallel FOLDER TRIAL [STAGE]     # one trial

Trials that share no processor take no time from each other, so that variants compare as on a smaller machine.
"""

import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from five.ablation.config import AblationConfig, Trial
from five.ablation.runner import Ablation, TrialFailed, read_description
from five.run.load import ConfigError
from rapid.child_process import launcher

INTERRUPTED = (-signal.SIGINT, -signal.SIGTERM, 128 + signal.SIGINT, 128 + signal.SIGTERM)  # exit statuses


class TrialInterrupted(TrialFailed):
    """A trial's process was ended by Ctrl-C or SIGTERM, which says nothing about its configuration."""


def shares(parallel_runs: int) -> list[set[int]]:
    """Return this process's processors in ``parallel_runs`` parts of equal size, so that minutes of all runs compare.

    Processors that are left over stay unused. The parts are unbounded (empty sets) if the system cannot bind processes.
    Raises ConfigError for fewer processors than parts.
    """
    if not hasattr(os, "sched_getaffinity"):
        return [set()] * parallel_runs
    there = sorted(os.sched_getaffinity(0))
    if parallel_runs > len(there):
        raise ConfigError(f"parallel_runs {parallel_runs}: at most one run for each of this process's "
                          f"{len(there)} processors is allowed")
    size = len(there) // parallel_runs
    return [set(there[i * size:(i + 1) * size]) for i in range(parallel_runs)]


def work_on_shares(parts: Sequence[set[int]], work: Callable[[], bool]) -> None:
    """Call ``work`` on a thread for each share of the processors until it returns False.

    After an error no thread calls it again, running calls end, and the first error is raised.
    """
    ended = threading.Event()

    def repeat(share: set[int]) -> None:
        if share:
            os.sched_setaffinity(0, share)  # affinity of this thread, inherited by its processes
        try:
            while not ended.is_set() and work():
                pass
        except BaseException:
            ended.set()
            raise

    with ThreadPoolExecutor(len(parts)) as workers:
        try:
            for worker in [workers.submit(repeat, share) for share in parts]:
                worker.result()
        finally:
            ended.set()


def run(ablation: Ablation, say: Callable[[str], None] = print, ended: Callable[[], None] = lambda: None) -> None:
    """Run the missing trials.

    ``say`` receives each trial's lines, prefixed by its name. ``ended`` is called after each finished trial, by one
    thread at a time. After a failed trial no further one starts, running ones end, and TrialFailed holds the error.
    Raises ConfigError for more parallel trials than processors.
    """
    parts = shares(ablation.config.parallel_runs)
    trials = deque(ablation.missing())
    ended_lock = threading.Lock()
    if trials:
        ablation.anchors(say)  # once, before the trials need them

    def work() -> bool:
        try:
            trial = trials.popleft()
        except IndexError:
            return False
        run_process(ablation.folder, trial, say)
        with ended_lock:
            ended()
        return True

    work_on_shares(parts, work)


def run_process(folder: Path, trial: Trial, say: Callable[[str], None], stage: int | None = None) -> None:
    """Run one trial in a process, with ``stage`` as far as `Ablation.run_trial` says. The process dies with this one.

    Raises TrialFailed, and TrialInterrupted if a signal ended the process.
    """
    last: deque[str] = deque(maxlen=25)
    arguments = [str(folder.resolve()), trial.name, *([] if stage is None else [str(stage)])]
    with subprocess.Popen(launcher([sys.executable, "-m", __name__, *arguments]), text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}) as process:
        assert process.stdout is not None
        for line in process.stdout:
            last.append(line)
            say(f"{trial.name}: {line.rstrip()}")
    if process.returncode != 0:
        kind = TrialInterrupted if process.returncode in INTERRUPTED else TrialFailed
        raise kind(f"{trial.name} ended with status {process.returncode}:\n{''.join(last).rstrip()}")


def main(arguments: Sequence[str]) -> int:
    """Run one trial of an ablation's folder. Return the exit status: 1 if it failed, with the error on stderr."""
    folder, name, *stage = arguments
    config = AblationConfig.model_validate(read_description(Path(folder) / "ablation.json")["config"])
    try:
        Ablation(config, Path(folder)).run_trial(Trial.named(name), lambda text: print(text, flush=True),
                                                 *map(int, stage))
    except (TrialFailed, ConfigError, ValueError) as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
