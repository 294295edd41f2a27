"""Record of the lines that each test executes, in the test process and in the Python processes that it starts."""

import atexit
import os
import tempfile
from pathlib import Path

import coverage

TEST = "MUTATIONS_TEST"
"""Variable of the environment with the node id of the test that runs."""
SOURCES = "MUTATIONS_SOURCES"
FOLDER = "MUTATIONS_FOLDER"

Lines = dict[str, dict[str, list[int]]]
"""Executed lines by test and source file."""


class LineRecord:
    """Executed lines of source files, which are named relative to the working folder, from now on."""

    def __init__(self, sources: list[str]) -> None:
        self._paths = {source: str(Path(source).resolve()) for source in sources}
        self._folder = tempfile.mkdtemp(prefix="lines-", dir=".")
        os.environ |= {TEST: "", SOURCES: os.pathsep.join(self._paths.values()),
                       FOLDER: str(Path(self._folder).resolve())}
        self._coverage = coverage.Coverage(data_file=None, include=list(self._paths.values()), config_file=False)
        self._coverage.start()

    def begin(self, test: str) -> None:
        """Count the lines executed from now on to a test."""
        os.environ[TEST] = test
        self._coverage.switch_context(test)

    def finish(self) -> Lines:
        """Stop, and return the executed lines."""
        self._coverage.stop()
        records = [self._coverage.get_data()]
        for file in Path(self._folder).iterdir():
            records.append(coverage.CoverageData(str(file)))
            records[-1].read()
        lines: dict[str, dict[str, set[int]]] = {}
        for record in records:
            for source, path in self._paths.items():
                for line, tests in record.contexts_by_lineno(path).items():
                    for test in tests:
                        lines.setdefault(test, {}).setdefault(source, set()).add(line)
        return {test: {source: sorted(numbers) for source, numbers in by_source.items()}
                for test, by_source in lines.items()}


def record_child() -> None:
    """Record this process, a child of a test that is recorded, until it exits."""
    if not os.environ.get(TEST):
        return
    record = coverage.Coverage(data_file=os.path.join(os.environ[FOLDER], str(os.getpid())), config_file=False,
                               include=os.environ[SOURCES].split(os.pathsep), context=os.environ[TEST])
    record.start()

    def save() -> None:
        record.stop()
        record.save()

    atexit.register(save)
