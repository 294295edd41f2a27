"""Process that runs tests of the tree in its working folder: one JSON job a line on stdin, one answer a line on stdout.

    python -m tools.mutations.test_server LIBRARY ...

Each job runs in a fork of this process, which has imported the libraries and nothing of the tree, so a job starts in a
fraction of a second and sees the tree's files as they are. Keys of a job: ``files``, test files; ``tests``, node
ids to run, absent for all; ``timeout`` in seconds; ``record``, source files whose executed lines are recorded. An
answer has ``outcome`` (passed, failed, timeout or empty), ``reason``, ``seconds`` and, with ``record``, ``results``.
"""

import contextlib
import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tools.mutations.line_record import LineRecord


class Selection:
    """Pytest plugin that runs the given node ids alone, all without any, and notes results."""

    def __init__(self, tests: list[str] | None, record: LineRecord | None) -> None:
        self.tests = None if tests is None else set(tests)
        self.record = record
        self.results: dict[str, dict[str, Any]] = {}
        self.reason = ""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.tests is not None:
            items[:] = [item for item in items if item.nodeid in self.tests]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        if self.record:
            self.record.begin(item.nodeid)
        started = time.monotonic()
        self.results[item.nodeid] = {"passed": True}
        result = yield
        self.results[item.nodeid]["seconds"] = round(time.monotonic() - started, 3)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.results[report.nodeid]["passed"] = False
            self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        lines = report.longreprtext.strip().splitlines()
        errors = [line for line in lines if line.startswith("E ")] or lines[-1:]
        self.reason = self.reason or f"{report.nodeid}: {errors[0] if errors else ''}"[:400]


def run_tests(job: dict[str, Any]) -> dict[str, Any]:
    """Run a job's tests in this process."""
    record = LineRecord(job["record"]) if job.get("record") else None
    selection = Selection(job.get("tests"), record)
    options = ["-q", "-p", "no:cacheprovider", *([] if record else ["-x"])]
    status = int(pytest.main([*options, *job["files"]], plugins=[selection]))
    answer: dict[str, Any] = {"outcome": {0: "passed", 5: "empty"}.get(status, "failed"),
                              "reason": selection.reason or f"pytest exited with {status}"}
    if record:
        lines = record.finish()
        answer["results"] = {name: result | {"lines": lines.get(name, {})}
                             for name, result in selection.results.items()}
    return answer


def run_forked(job: dict[str, Any]) -> dict[str, Any]:
    """Run a job in a fork of this process and kill everything that it started."""
    started = time.monotonic()
    answer_file = Path(f"answer-{os.getpid()}.json")
    answer_file.unlink(missing_ok=True)
    child = os.fork()
    if not child:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with contextlib.suppress(BaseException):
            os.setsid()
            log = os.open("tests.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for stream in (1, 2):
                os.dup2(log, stream)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            # Two versions of a file within a second look alike to the bytecode cache.
            sys.dont_write_bytecode = not job.get("record")
            os.environ |= {"PYTHONDONTWRITEBYTECODE": "1"} if sys.dont_write_bytecode else {}
            answer_file.write_text(json.dumps(run_tests(job)), encoding="utf-8")
        os._exit(0)
    answer: dict[str, Any] = {"outcome": "timeout", "reason": f"no result in {job['timeout']:.0f} s"}
    try:
        if _wait(child, job["timeout"]):
            answer = {"outcome": "failed", "reason": "the test process died"}
            with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
                answer = json.loads(answer_file.read_text(encoding="utf-8"))
    finally:
        _kill(child)
    return answer | {"seconds": round(time.monotonic() - started, 3)}


def _kill(child: int) -> None:
    """Kill the child, if it runs, and all processes that it started."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for process in psutil.Process(child).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.Process(child).kill()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child, 0)


def _wait(child: int, seconds: float) -> bool:
    """Wait for the child to exit. Return whether it did in time, which is longer on a busy machine."""
    spent, parent = 0.0, os.getppid()
    while spent < seconds and os.getppid() == parent:  # without the parent nobody waits for the answer
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(0.02)
        spent += 0.02 / max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    return False


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for library in sys.argv[1:]:
        importlib.import_module(library)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # libraries print to stderr, so that only answers are on stdout
    for line in sys.stdin:
        print(json.dumps(run_forked(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
