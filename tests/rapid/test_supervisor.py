"""The supervisor with real processes."""

import errno
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rapid.supervisor import ProcessSpec, ProcessState, ProcessStatus, Supervisor
from tests.rapid.process_helpers import alive, kill
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
SLEEPER = [sys.executable, "-S", "-c", "import time; print('up', flush=True); time.sleep(600)"]
# Ignores SIGTERM, and so does its child.
STUBBORN = [sys.executable, "-S", "-c", textwrap.dedent("""
    import os, signal, sys, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = os.fork()
    if child:
        open(sys.argv[1], 'w').write(f'{os.getpid()} {child}')
    time.sleep(600)
""")]


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-S", "-c", textwrap.dedent(code), *arguments]


@pytest.fixture
def events() -> list[tuple[str, str, str]]:
    return []


@pytest.fixture
def supervisor(tmp_path: Path, events: list[tuple[str, str, str]]) -> Iterator[Supervisor]:
    with Supervisor(tmp_path / "logs", lambda *event: events.append(event)) as s:
        yield s


def only(supervisor: Supervisor) -> ProcessStatus:
    return supervisor.status()[0]


def test_killed_process_is_restarted(supervisor: Supervisor, events: list[tuple[str, str, str]]) -> None:
    supervisor.start(ProcessSpec("sleeper", SLEEPER))
    supervisor.wait_ready(["sleeper"], 30)
    pids = set()
    for times in range(1, 3):
        pid = only(supervisor).pid
        assert pid is not None and alive(pid)
        eventually(lambda n=times: supervisor.log_tail("sleeper").splitlines() == ["up"] * n)
        pids.add(pid)
        kill(pid)
        eventually(lambda n=times: only(supervisor).restarts == n)
        supervisor.wait_ready(["sleeper"], 30)
        assert only(supervisor).last_end == "was killed by SIGKILL"
        assert only(supervisor).state is ProcessState.READY
    assert only(supervisor).pid not in pids
    assert [what for _, what, _ in events] == ["started", "died", "started", "died", "started"]
    assert eventually(lambda: supervisor.log_tail("sleeper").splitlines() == ["up"] * 3)


def test_readiness_follows_the_probe(supervisor: Supervisor, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    supervisor.start(ProcessSpec("slow", SLEEPER, ready=flag.exists))
    with pytest.raises(TimeoutError, match=r"slow was not ready within 0.05 s"):
        supervisor.wait_ready(["slow"], 0.05)
    assert only(supervisor).state in (ProcessState.WAITING, ProcessState.STARTING)
    flag.touch()
    supervisor.wait_ready(["slow"], 30)
    assert only(supervisor).state is ProcessState.READY


def test_crashing_process_fails_with_its_log(supervisor: Supervisor) -> None:
    supervisor.start(ProcessSpec("broken", python("print('no such hero'); raise SystemExit(3)"), give_up_after=3,
                                 ready=lambda: False))
    with pytest.raises(RuntimeError, match=r"(?s)broken did not start: exited with code 3.*no such hero"):
        supervisor.wait_ready(["broken"], 30)
    assert supervisor.failed() == ["broken"] and only(supervisor).restarts == 2
    supervisor.start(ProcessSpec("absent", ["/no/such/program"], give_up_after=1, ready=lambda: False))
    with pytest.raises(RuntimeError, match=r"(?s)absent did not start.*cannot start /no/such/program"):
        supervisor.wait_ready(["absent"], 30)


def test_explained_death_is_final(supervisor: Supervisor, tmp_path: Path) -> None:
    """Only the log of the last start counts."""
    (tmp_path / "logs/broken.log").write_text("the file is damaged\n")
    (tmp_path / "deaths").write_text("")
    code = """
        import sys
        with open(sys.argv[1], "a+") as file:
            file.write(".")
            file.seek(0)
            print("the file is damaged" if len(file.read()) == 2 else "no memory", flush=True)
        raise SystemExit(1)
    """
    supervisor.start(ProcessSpec("broken", python(code, str(tmp_path / "deaths")), ready=lambda: False,
                                 explain=lambda log: "repair it" if "damaged" in log else ""))
    with pytest.raises(RuntimeError) as caught:
        supervisor.wait_ready(["broken"], 30)
    assert str(caught.value) == "repair it" == supervisor.why_failed("broken")
    assert supervisor.failed() == ["broken"] and (tmp_path / "deaths").read_text() == ".."


def test_restart_backoff_grows(supervisor: Supervisor, events: list[tuple[str, str, str]]) -> None:
    supervisor.start(ProcessSpec("broken", python("raise SystemExit(1)"), give_up_after=4))
    eventually(lambda: supervisor.failed() == ["broken"])
    pauses = [details.split("restarting in ")[1] for _, what, details in events if what == "died"]
    assert pauses == ["0.2 s", "0.4 s", "0.8 s"]


def test_optional_process_is_restarted_without_end(supervisor: Supervisor, events: list[tuple[str, str, str]],
                                                   tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rapid.supervisor._FAILING_PAUSE", 0.1)
    monkeypatch.setattr("rapid.supervisor._SETTLED_SECONDS", 60.0)  # longer than a slow machine needs to start python
    repaired = tmp_path / "repaired"
    supervisor.start(ProcessSpec("watcher", python("""
        import os, sys, time
        if not os.path.exists(sys.argv[1]): sys.exit(3)
        time.sleep(600)
    """, str(repaired)), give_up_after=2, required=False))
    eventually(lambda: only(supervisor).restarts >= 5)
    assert only(supervisor).failing and supervisor.failed() == []
    assert [what for _, what, _ in events] == ["started", "died", "started", "failing"]  # later deaths are not
    repaired.touch()
    monkeypatch.setattr("rapid.supervisor._SETTLED_SECONDS", 1.0)
    eventually(lambda: not only(supervisor).failing)
    assert events[4:] == [("watcher", "recovered", "has run for 1 s")]


def test_full_disk_is_waited_for(supervisor: Supervisor, events: list[tuple[str, str, str]],
                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rapid.supervisor._LONGEST_PAUSE", 0.05)
    start, attempts = subprocess.Popen, 0

    def failing_start(*arguments: Any, **options: Any) -> Any:
        nonlocal attempts
        attempts += 1
        if attempts <= 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        return start(*arguments, **options)

    monkeypatch.setattr("rapid.supervisor.subprocess.Popen", failing_start)
    supervisor.start(ProcessSpec("sleeper", SLEEPER, give_up_after=2))
    supervisor.wait_ready(["sleeper"], 30)
    assert [what for _, what, _ in events] == ["died", "started"]


def test_process_inherits_open_files(supervisor: Supervisor, tmp_path: Path) -> None:
    with (tmp_path / "shared").open("w") as shared:
        supervisor.start(ProcessSpec("writer", python("""
            import os, sys
            os.write(int(sys.argv[1]), b'here')
        """, str(shared.fileno())), restart=False, pass_fds=(shared.fileno(),)))
        eventually(lambda: only(supervisor).state is ProcessState.ENDED)
    assert (tmp_path / "shared").read_text() == "here"


def test_exit_code_0_is_not_a_death(supervisor: Supervisor, events: list[tuple[str, str, str]]) -> None:
    supervisor.start(ProcessSpec("renewed", python("raise SystemExit(0)"), give_up_after=2))
    eventually(lambda: supervisor.failed() == ["renewed"])
    assert ("renewed", "ended", "exited with code 0; restarting in 0.2 s") in events


def test_process_without_restart_stays_ended(supervisor: Supervisor) -> None:
    supervisor.start(ProcessSpec("once", python("print('done')"), restart=False))
    eventually(lambda: only(supervisor).state is ProcessState.ENDED)
    assert only(supervisor).last_end == "exited with code 0" and only(supervisor).restarts == 0


def test_log_of_a_process_is_rotated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("rapid.supervisor._ROTATION_SECONDS", 0.1)
    monkeypatch.setattr("rapid.supervisor.LOG_BYTES", 20_000)
    with Supervisor(tmp_path / "logs") as supervisor:
        supervisor.start(ProcessSpec("writer", python("""
            import itertools, time
            for number in itertools.count():
                print('line', number, flush=True)
                time.sleep(0.0001)
        """)))
        eventually((tmp_path / "logs/writer.log.2").exists, 60)
        end = (tmp_path / "logs/writer.log.1").read_text().splitlines()[-1]
        newer = eventually(lambda: supervisor.log_tail("writer").splitlines()[1:-1])[0]
        assert newer.startswith("line ") and int(newer.split()[1]) > int(end.split()[1])


def test_environment_names_and_removal(supervisor: Supervisor) -> None:
    supervisor.start(ProcessSpec("env", python("""
        import os, time
        print(os.environ['FIVE_X'], os.getpgid(0) == os.getpid(), flush=True)
        time.sleep(600)
    """), env={"FIVE_X": "42"}))
    eventually(lambda: supervisor.log_tail("env") == "42 True")
    with pytest.raises(ValueError, match="'env' already exists"):
        supervisor.start(ProcessSpec("env", SLEEPER))
    pid = only(supervisor).pid
    assert pid is not None
    supervisor.remove("env")
    assert not alive(pid) and supervisor.status() == []


def test_stop_ends_all_stages_in_order(tmp_path: Path) -> None:
    order = tmp_path / "order"
    noted = """
        import signal, sys, time
        def end(*_):
            open(sys.argv[1], 'a').write(sys.argv[2] + '\\n')
            sys.exit(0)
        signal.signal(signal.SIGTERM, end)
        print('up', flush=True)
        while True: time.sleep(0.01)
    """
    family = tmp_path / "family"
    with Supervisor(tmp_path / "logs") as supervisor:
        for name, stage in (("rollout", 2), ("redis", 0), ("inference", 1)):
            supervisor.start(ProcessSpec(name, python(noted, str(order), name), stage=stage))
        supervisor.start(ProcessSpec("stubborn", [*STUBBORN, str(family)], stage=3, grace_seconds=0.3))
        for name in ("rollout", "redis", "inference"):
            eventually(lambda n=name: supervisor.log_tail(n) == "up")
        eventually(lambda: family.exists() and len(family.read_text().split()) == 2)
        pids = [s.pid for s in supervisor.status()] + [int(p) for p in family.read_text().split()]
    assert order.read_text().split() == ["rollout", "inference", "redis"]
    eventually(lambda: not any(alive(p) for p in pids if p))
    assert all(s.state is ProcessState.STOPPED for s in supervisor.status())
    with pytest.raises(ValueError, match="stopping"):
        supervisor.start(ProcessSpec("late", SLEEPER))


def test_hurried_end_shortens_the_grace_period(tmp_path: Path) -> None:
    began: list[float] = []

    def hurried() -> bool:
        began.append(time.monotonic())
        return time.monotonic() - began[0] > 0.2

    family = tmp_path / "family"
    with Supervisor(tmp_path / "logs", hurried=hurried) as supervisor:
        supervisor.start(ProcessSpec("stubborn", [*STUBBORN, str(family)], grace_seconds=300))
        eventually(lambda: family.exists() and len(family.read_text().split()) == 2)
    assert 1.0 < time.monotonic() - began[0] < 30
    assert not [pid for pid in map(int, family.read_text().split()) if alive(pid)]


def test_descendants_of_a_dead_process_are_killed(supervisor: Supervisor, tmp_path: Path) -> None:
    family = tmp_path / "family"
    supervisor.start(ProcessSpec("parent", [*STUBBORN, str(family)], grace_seconds=0.1))
    eventually(lambda: family.exists() and len(family.read_text().split()) == 2)
    parent, child = map(int, family.read_text().split())
    kill(parent)
    eventually(lambda: not alive(child))


SUPERVISING = """
    import queue, signal, sys
    from pathlib import Path
    from rapid.supervisor import ProcessSpec, Supervisor
    ended = queue.SimpleQueue()  # an Event's lock may be held by the wait() that a signal interrupts
    signal.signal(signal.SIGINT, lambda *_: ended.put(None))
    folder = Path(sys.argv[1])
    with Supervisor(folder) as supervisor:
        for i in range(3):
            supervisor.start(ProcessSpec(f"p{i}", [sys.executable, "-S", "-c", "import time; time.sleep(600)"]))
        supervisor.wait_ready([f"p{i}" for i in range(3)], 30)
        print(*(s.pid for s in supervisor.status()), flush=True)
        ended.get()
"""


def supervising(tmp_path: Path) -> tuple["subprocess.Popen[bytes]", list[int]]:
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(SUPERVISING), str(tmp_path)],
                               stdout=subprocess.PIPE, cwd=ROOT, start_new_session=True,
                               env={**os.environ, "PYTHONPATH": "libs:."})
    assert process.stdout is not None
    pids = [int(p) for p in process.stdout.readline().split()]
    assert len(pids) == 3 and all(map(alive, pids))
    return process, pids


def test_killed_supervisor_leaves_no_orphans(tmp_path: Path) -> None:
    process, pids = supervising(tmp_path)
    process.kill()
    process.wait()
    eventually(lambda: not any(map(alive, pids)))


def test_ctrl_c_ends_everything_once(tmp_path: Path) -> None:
    process, pids = supervising(tmp_path)
    # As from a terminal: the signal goes to the foreground group. The children have groups of their own.
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=30) == 0
    assert not any(map(alive, pids))


def test_children_outlive_the_calling_thread(supervisor: Supervisor) -> None:
    """The kernel kills a child with the thread that started it, so that thread must not be the caller's."""
    import threading

    asking = threading.Thread(target=lambda: supervisor.start(ProcessSpec("sleeper", SLEEPER)))
    asking.start()
    asking.join()
    supervisor.wait_ready(["sleeper"], 30)
    time.sleep(0.3)
    assert only(supervisor).restarts == 0 and only(supervisor).state is ProcessState.READY
