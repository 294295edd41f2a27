"""`five bench`: a part of the system beside its reference."""

import importlib

from five.cli.benchmarks import table

BENCHMARKS = ("game", "env", "inference", "experience", "optimizer", "publish", "rest", "watching", "play", "draft",
              "load", "train")


def bench(what: str, as_json: bool) -> int:
    """Runs the benchmark ``what``, or all of them one after another, and prints its rows. Returns the exit status."""
    rows: list[table.Row] = []
    for name in BENCHMARKS if what == "all" else (what,):
        found: list[table.Row] = importlib.import_module(f"five.cli.benchmarks.{name}").measure()
        if not as_json:
            print(table.as_text(found), end="\n\n", flush=True)
        rows += found
    if as_json:
        print(table.as_json(rows))
    return 0
