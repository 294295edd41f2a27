"""Mutation tests: ``python -m tools.mutations [MODULE or source file ...]``, or ``make test-mutations``.

Scores, survivors and all mutants go to build/mutations/*.md. The tree itself is never changed.
"""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

from tools.mutations.campaign import Campaign, Outcome
from tools.mutations.equivalent import EquivalentMutants
from tools.mutations.modules import MODULES_FILE, ModulesError, load_selection
from tools.mutations.report import describe, write_report

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: list[str] | None = None) -> int:
    """Run the mutation tests and return the exit status: 0 after a run, whatever the score."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutations", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help="modules of modules.toml, folders or source files; default: all")
    parser.add_argument("--sample", type=int, default=25, help="mutants of each source file; 0 for all (default 25)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample (default 1)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="parallel copies of the tree")
    parser.add_argument("--budget", type=float, default=30.0, metavar="SECONDS",
                        help="duration of the tests outside the own file that one mutant gets (default 30)")
    parser.add_argument("--timeout", type=float, default=20.0, metavar="SECONDS",
                        help="time for the tests of a mutant on top of five times their usual duration (default 20)")
    parser.add_argument("--out", type=Path, default=None, help="folder of the report (default build/mutations)")
    parser.add_argument("--root", type=Path, default=ROOT, help="tree to test (default: this one)")
    parser.add_argument("--config", type=Path, default=MODULES_FILE, help="file of modules (default: modules.toml)")
    parser.add_argument("--equivalent", type=Path, default=None, help="file of equivalent mutants")
    given = parser.parse_args(arguments)
    root = given.root.resolve()
    try:
        selection = load_selection(root, given.modules, given.config)
    except ModulesError as error:
        parser.error(str(error))
    output = given.out or root / "build" / "mutations"

    so_far: list[Outcome] = []

    def report(outcome: Outcome) -> None:
        so_far.append(outcome)
        write_report(output, so_far, f"unfinished: {len(so_far)} mutants")
        if outcome.verdict != "killed":
            print(describe(outcome), flush=True)

    started = time.monotonic()
    equivalent = EquivalentMutants(given.equivalent) if given.equivalent else EquivalentMutants()
    campaign = Campaign(root, selection, given.sample or None, given.seed, given.workers, given.budget,
                        given.timeout, equivalent, report)
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # removes the copies
    try:
        outcomes = campaign.run()
    finally:
        signal.signal(signal.SIGTERM, before)
    title = (f"sample={given.sample or 'all'} seed={given.seed} files={len(selection.targets)} mutants={len(outcomes)} "
             f"minutes={(time.monotonic() - started) / 60:.1f}")
    print(f"\n{title}\n{write_report(output, outcomes, title)}\n\nSurvivors: {output / 'survivors.md'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
