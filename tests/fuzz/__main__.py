"""Fuzzers of everything that reads from outside a process: messages, rows, files, the REST API and web sockets.

``python -m tests.fuzz --only wire,files --minutes 10 --seed 3`` prints cases, seconds and findings of each group. A
failing input is stored under ``--out``; ``--case PATH`` runs it again. ``make fuzz`` runs this.
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.fuzz.targets import GROUPS, Finding, all_targets

LIVE = ("rest", "sockets")


def run_groups(groups: list[str], minutes: float, seed: int, out: Path) -> int:
    """Fuzz each group for an equal time; return 1 when there are findings."""
    shutil.rmtree(out / "findings", ignore_errors=True)
    decoders = [group for group in groups if group in GROUPS]
    status, each = 0, minutes / len(groups)
    if decoders:
        # In a process of its own, because it instruments what it imports.
        status = subprocess.run(
            [sys.executable, "-m", "tests.fuzz.engine", "--groups", ",".join(decoders), "--minutes",
             str(each * len(decoders)), "--seed", str(seed), "--out", str(out)]).returncode
    for group in groups:
        if group in LIVE:
            summary = _run_live(group, each, seed, out)
            (out / f"{group}.json").write_text(json.dumps(summary, indent=1) + "\n")
            print(json.dumps(summary), flush=True)
            status = status or int(bool(summary["findings"]))
    return status


def _run_live(group: str, minutes: float, seed: int, out: Path) -> dict[str, Any]:
    out.mkdir(parents=True, exist_ok=True)
    if group == "rest":
        from tests.fuzz.rest import fuzz_rest

        return fuzz_rest(minutes, seed, out)
    from tests.fuzz.sockets import fuzz_sockets

    return fuzz_sockets(minutes, seed, out)


def repeat(path: Path) -> int:
    """Run a stored input again; return 1 if it is still a finding."""
    kind = path.parent.name
    if kind == "rest":
        from tests.fuzz.rest import repeat as send_again

        print(send_again(path))
        return 0
    if kind == "sockets":
        from tests.fuzz.sockets import fuzz_sockets

        summary = fuzz_sockets(10.0, int(json.loads(path.read_text())["seed"]), Path("build/fuzz/again"), cases=1)
        print(json.dumps(summary))
        return int(bool(summary["findings"]))
    from tests.fuzz.message_targets import register_codec

    register_codec()
    try:
        print(f"{kind}: {'accepted' if all_targets()[kind].accepts(path.read_bytes()) else 'refused'}")
        return 0
    except Finding as finding:
        print(finding)
        return 1


def main() -> int:
    """Run the command; return 1 when there are findings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(GROUPS), help=f"groups: {', '.join((*GROUPS, *LIVE))}")
    parser.add_argument("--minutes", type=float, default=1.0, help="of all groups together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--case", type=Path)
    given = parser.parse_args()
    if given.case is not None:
        return repeat(given.case)
    groups = given.only.split(",")
    if unknown := set(groups) - {*GROUPS, *LIVE}:
        parser.error(f"--only {', '.join(unknown)}: allowed are {', '.join((*GROUPS, *LIVE))}")
    return run_groups(groups, given.minutes, given.seed, given.out)


if __name__ == "__main__":
    sys.exit(main())
