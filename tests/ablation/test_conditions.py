import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from five.ablation import conditions
from five.ablation.conditions import Conditions, monitor_process

BUSY = "import time\nwhile time.process_time() < 0.3: pass"


def start(*command: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(command, stdin=subprocess.DEVNULL)


def test_processor_time_includes_children() -> None:
    script = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BUSY!r}], check=True)"
    found = monitor_process(start(sys.executable, "-c", script), 60, "abc")
    assert 0.3 <= found.processor_seconds <= 2 * found.wall_seconds + 1
    assert found.processors == sorted(os.sched_getaffinity(0)) and found.commit == "abc"
    assert Conditions(**found.as_dict()) == found


def test_load_is_sampled_repeatedly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "SAMPLE_SECONDS", 0.02)
    seen: list[float] = []
    process = start("sleep", "60")

    def loads() -> Iterator[float]:
        while True:
            seen.append(2.0 + len(seen))
            if len(seen) == 4:
                process.kill()
            yield seen[-1]

    source = loads()
    found = monitor_process(process, 60, "abc", lambda: next(source))
    assert found.load_before == 2.0 and len(seen) >= 4 and found.load == round(sum(seen) / len(seen), 2)


def test_share_is_of_the_bound_processors() -> None:
    assert Conditions([0, 1], 60.0, 60.0, 1.0, 1.0, "abc").share == pytest.approx(0.5)


def test_timeout_kills_the_process() -> None:
    process = start("sleep", "60")
    with pytest.raises(subprocess.TimeoutExpired):
        monitor_process(process, 0.1, "abc")
    assert process.returncode is not None
