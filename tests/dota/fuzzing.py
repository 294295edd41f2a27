"""Fuzzer of games, orders, configurations and snapshots on a core with sanitizers.

``python -m tests.dota.fuzzing --minutes 1`` runs cases of rising seeds in a subprocess that may crash. Findings are
kept under ``--out`` with their seed; ``--case SEED`` repeats one. ``--only games --cases 1000`` plays that many short
bot games. A case may be refused (ValueError, KeyError, IndexError, TypeError, OverflowError); anything else (a crash, a
sanitizer report, a hang) is a finding. ``make fuzz`` and ``make test-asan-games`` build the core and run this.
"""

import argparse
import json
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.dota.fuzz_cases import CASES
from tests.dota.other_core import use_other_core

BATCH = 40  # cases a process
HANGS_AFTER = 240  # seconds without a new case


def run_case(seed: int, only: str | None) -> str:
    """Run one case and return its kind. Raises unexpected exceptions."""
    dice = random.Random(seed)
    kind = only or dice.choice(list(CASES))
    CASES[kind](dice)
    return kind


def run_batch(first: int, count: int, only: str | None, progress: Path) -> None:
    """Run cases, logging the start and end of each."""
    with progress.open("a") as notes:
        for seed in range(first, first + count):
            print(f"begin {seed}", file=notes, flush=True)
            kind = run_case(seed, only)
            print(f"end {seed} {kind}", file=notes, flush=True)


def watch(child: "subprocess.Popen[bytes]", progress: Path, until: float) -> bool:
    """Wait for a batch; return True when it was killed for a hang or the time limit."""
    while child.poll() is None:
        time.sleep(0.1)
        if time.time() - progress.stat().st_mtime > HANGS_AFTER or time.time() > until:
            child.kill()
            child.wait()
            return True
    return False


def fuzz(out: Path, first: int, cases: int | None, minutes: float, only: str | None) -> dict[str, Any]:
    """Run cases in subprocesses until the time or case limit; return counts and findings."""
    out.mkdir(parents=True, exist_ok=True)
    begun, until = time.time(), time.time() + 60 * minutes
    seed, done, findings = first, Counter[str](), []
    while time.time() < until and (cases is None or seed < first + cases):
        count = BATCH if cases is None else min(BATCH, first + cases - seed)
        progress = out / "progress"
        progress.write_text("")
        log = out / "log"
        with log.open("wb") as stderr:
            child = subprocess.Popen([sys.executable, "-m", "tests.dota.fuzzing", "--first", str(seed), "--count",
                                      str(count), "--progress", str(progress), *(["--only", only] if only else [])],
                                     stderr=stderr)
            stopped = watch(child, progress, until)
        notes = [row.split() for row in progress.read_text().splitlines()]
        done.update(row[2] for row in notes if row[0] == "end")
        last = max((int(row[1]) for row in notes), default=seed)
        unfinished = bool(notes) and notes[-1][0] == "begin"
        over = stopped and time.time() >= until
        if not over and (child.returncode != 0 or stopped or not notes):
            text = log.read_text(errors="replace")
            kept = out / f"finding-{last}.txt"
            kept.write_text(f"seed {last}{', hung' if stopped else ''}; again: make fuzz CASE={last}"
                            f"{f' ONLY={only}' if only else ''}\n{text}")
            findings.append(str(kept))
            print(f"five: seed {last}: {kept}", flush=True)
        seed = last + 1 if unfinished or notes else seed + count
    return {"seconds": round(time.time() - begun, 1), "first": first, "next": seed, "cases": sum(done.values()),
            "kinds": dict(done), "findings": findings}


def main() -> int:
    """Run the command; return 1 when there were findings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--cases", type=int)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--only", choices=CASES)
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--case", type=int)
    parser.add_argument("--count", type=int)
    parser.add_argument("--progress", type=Path)
    given = parser.parse_args()
    if other := use_other_core():
        from dota import _core

        if not str(_core.__file__).startswith(other):
            raise RuntimeError(f"the core that is run is {_core.__file__}, not that of {other}")
    if given.progress:
        run_batch(given.first, given.count, given.only, given.progress)
        return 0
    if given.case is not None:
        print(run_case(given.case, given.only))
        return 0
    summary = fuzz(given.out, given.first, given.cases, given.minutes, given.only)
    (given.out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    print(json.dumps(summary))
    return 1 if summary["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
