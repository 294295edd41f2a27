"""Coverage-guided fuzzing of the targets by atheris, each in a process of its own that may crash.

``python -m tests.fuzz.engine`` instruments the project's Python, imports it once, and forks a process per target.
Native code is not instrumented: a crash is a finding all the same. Each input runs under limits of time and memory.
"""

import argparse
import contextlib
import faulthandler
import hashlib
import io
import json
import mmap
import os
import resource
import signal
import struct
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any, NoReturn

from tests.fuzz.targets import FOLDER_VARIABLE, GROUPS, MAX_BYTES, Finding, Target, all_targets, memory_folder
from tests.repository import ROOT

ADDRESS_SPACE = 4 << 30  # bytes that a target may map besides what the imports did
GRACE_SECONDS = 90.0  # of one input, before its process is killed
INSTRUMENTED = ("rapid", "dota", "five")
MISSING = ("atheris is missing; on Linux x86_64 with CPython 3.11 to 3.13: .venv/bin/pip install -e '.[fuzz]'. The "
           "stored inputs run without it: pytest tests/fuzz")


def peak_memory() -> int:
    """Return the largest resident memory of this process so far, bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class LastInput:
    """Memory that a target's process shares with its parent: the input that it runs, and what it has counted."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 32 + MAX_BYTES)

    def write(self, data: bytes, cases: int, accepted: int) -> None:
        """Store an input that is about to run."""
        self._memory[:24 + len(data)] = struct.pack("<QQQ", cases, accepted, len(data)) + data

    def read(self) -> tuple[bytes, int, int]:
        """Return the last input, and the numbers of cases and accepted inputs."""
        cases, accepted, size = struct.unpack_from("<QQQ", self._memory)
        return bytes(self._memory[24:24 + size]), cases, accepted


class FindingsFolder:
    """Findings of one run: the smallest input of each cause, and a text that describes it."""

    def __init__(self, out: Path) -> None:
        self._out = out

    def add(self, target: str, what: str, data: bytes) -> Path:
        """Store an input unless a smaller one of the same cause is stored."""
        cause = what.split(":", 2)[1] if what.count(":") > 2 else what[:60]
        name = hashlib.sha256(f"{target}{cause}".encode()).hexdigest()[:12]
        path = self._out / "findings" / target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or len(data) < path.stat().st_size:
            path.write_bytes(data)
            path.with_name(f"{name}.txt").write_text(f"{what}\nagain: make fuzz CASE={path}\n", errors="replace")
        return path

    def all(self) -> list[Path]:
        """Return the inputs."""
        return sorted(p for p in (self._out / "findings").glob("*/*") if p.suffix != ".txt")


def fuzz_target(target: Target, seconds: float, seed: int, out: Path, last: LastInput) -> NoReturn:
    """Fuzz one target in this process, which ends."""
    import atheris

    faulthandler.disable()  # libFuzzer describes a crash
    until = time.monotonic() + seconds
    findings = FindingsFolder(out)
    cases = accepted = 0
    with Path("/proc/self/statm").open() as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + ADDRESS_SPACE, mapped + ADDRESS_SPACE))
    corpus = out / "corpus" / target.name
    corpus.mkdir(parents=True, exist_ok=True)
    for name, data in target.seeds.items():
        (corpus / name).write_bytes(data[:MAX_BYTES])
        target.accepts(data)  # so that caches and pools do not count as memory of an input

    def run(data: bytes) -> None:
        nonlocal cases, accepted
        if time.monotonic() > until:
            os._exit(0)
        if len(data) > MAX_BYTES:
            return
        last.write(data, cases, accepted)
        before = peak_memory()
        try:
            accepted += target.accepts(data)
            grown = peak_memory() - before
            if grown > target.max_growth + 64 * len(data):
                raise Finding(f"{target.name}: memory grew by {grown >> 20} MiB for {len(data)} bytes")
        except Finding as finding:
            findings.add(target.name, str(finding), data)
        cases += 1

    def mutate(data: bytes, most: int, number: int) -> bytes:
        dice = Random(number)
        if target.mutate is None or dice.random() < 0.2:
            return bytes(atheris.Mutate(data, most))
        return target.mutate(data, dice)[:most]

    os.dup2(os.open(out / f"{target.name}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    atheris.Setup([sys.argv[0], str(corpus), f"-seed={seed % 2**31 or 1}", f"-max_len={MAX_BYTES}", "-timeout=60",
                   "-rss_limit_mb=0", f"-artifact_prefix={tempfile.gettempdir()}/five-fuzz-"], run,
                  custom_mutator=mutate)
    atheris.Fuzz()
    os._exit(3)


def run_target(target: Target, seconds: float, seed: int, out: Path) -> tuple[int, int]:
    """Fuzz one target in child processes until the time is over; return the numbers of cases and accepted inputs."""
    until = time.monotonic() + seconds
    total = taken = 0
    while (left := until - time.monotonic()) > 0:
        last = LastInput()
        child = os.fork()
        if child == 0:
            try:
                fuzz_target(target, left, seed, out, last)
            except BaseException as error:  # the child must not return into the parent's code
                print(f"five: {target.name}: {error!r}", flush=True)
            os._exit(4)
        status = _wait(child, until + GRACE_SECONDS)
        data, cases, accepted = last.read()
        total, taken, seed = total + cases, taken + accepted, seed + 1
        if status == 0:
            break
        if status == 4:
            raise RuntimeError(f"{target.name}: a seed breaks it; run pytest tests/fuzz")
        FindingsFolder(out).add(target.name, f"{target.name}: the process ended with {status}:", data)
    return total, taken


def _wait(child: int, until: float) -> int:
    """Return the exit status of a child, the negative signal that killed it, or 'hung' as -SIGKILL."""
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return -signal.SIGKILL
        time.sleep(0.02)


def run_all(targets: list[Target], minutes: float, seed: int, out: Path) -> dict[str, Any]:
    """Fuzz targets one after another, each for an equal time; return the numbers of cases."""
    from tests.fuzz.message_targets import register_codec
    from tests.fuzz.service_targets import redis_url

    register_codec()
    redis_url()  # one server for all forked processes
    found: dict[str, Any] = {}
    until = time.monotonic() + 60 * minutes
    for at, target in enumerate(targets):
        seconds = max(until - time.monotonic(), 0.2) / (len(targets) - at)
        cases, accepted = run_target(target, seconds, seed, out)
        found[target.name] = {"cases": cases, "accepted": accepted, "seconds": round(seconds, 1)}
        print(f"five: {target.name}: {cases} cases, {accepted} accepted, {seconds:.1f} s", flush=True)
    redis_url.server.stop()  # type: ignore[attr-defined]
    return found


def use_source_tree() -> None:
    """Import the project from its source folders: atheris cannot instrument modules of an editable install's loader."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__]
    sys.path[:0] = [str(ROOT / "libs"), str(ROOT)]


def main() -> int:
    """Run the command; return 1 when there are findings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", default=",".join(GROUPS))
    parser.add_argument("--target", default="", help="only targets whose names begin so")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"))
    given = parser.parse_args()
    try:
        import atheris
    except ImportError:
        print(MISSING)
        return 2
    began = time.monotonic()
    use_source_tree()
    with (contextlib.redirect_stderr(io.StringIO()),  # a line for each module
          atheris.instrument_imports(include=list(INSTRUMENTED))):
        targets = all_targets()
    chosen = [t for t in targets.values() if t.group in given.groups.split(",") and t.name.startswith(given.target)]
    given.out.mkdir(parents=True, exist_ok=True)
    print(f"five: {len(chosen)} targets, imported in {time.monotonic() - began:.1f} s", flush=True)
    os.environ[FOLDER_VARIABLE] = str(memory_folder())  # removed with what the targets' processes leave in it
    summary = run_all(chosen, given.minutes, given.seed, given.out)
    found = FindingsFolder(given.out).all()
    total = {"groups": given.groups, "cases": sum(row["cases"] for row in summary.values()),
             "seconds": round(time.monotonic() - began, 1), "findings": list(map(str, found)), "targets": summary}
    (given.out / "decoders.json").write_text(json.dumps(total, indent=1) + "\n")
    for path in found:
        print(f"five: {path}: {path.with_name(path.name + '.txt').read_text().splitlines()[0][:300]}")
    print(json.dumps({key: value for key, value in total.items() if key != "targets"}), flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
