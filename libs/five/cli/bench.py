"""`five bench`: measure a part of the system against its reference."""

import argparse
import dataclasses
import importlib
from collections.abc import Sequence
from typing import Any

from five.benchmarks import results

BENCHMARKS = ("game", "env", "inference", "experience", "optimizer", "publish", "rest", "spectate", "play",
              "dotaservice", "draft", "load", "train")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("what", choices=(*BENCHMARKS, "all"))
    parser.add_argument("--preset", help="preset or YAML file to measure, on its devices")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
                        help="change a value of the configuration, e.g. services.optimizer.device=cuda")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")


def size_of(name: str, benchmark: Any, preset: str | None, overrides: Sequence[str]) -> Any:
    """Return the workload of a benchmark's module for a preset and overrides.

    Raises RuntimeError for a benchmark without presets, naming those that have them.
    """
    size = _workload(benchmark)()
    if preset is None and not overrides:
        return size
    if not takes_presets(benchmark):
        able = ", ".join(n for n in BENCHMARKS if takes_presets(_module(n)))
        raise RuntimeError(f"benchmark {name} takes no preset: omit --preset and --set, or use one of {able}")
    if preset is None:
        return dataclasses.replace(size, overrides=(*size.overrides, *overrides))
    # A benchmark's own overrides belong to its own preset.
    return dataclasses.replace(size, preset=preset, overrides=tuple(overrides))


def takes_presets(benchmark: Any) -> bool:
    """Return whether a benchmark's workload can be another preset's."""
    return {"preset", "overrides"} <= {field.name for field in dataclasses.fields(_workload(benchmark))}


def bench(what: str, as_json: bool, preset: str | None = None, overrides: Sequence[str] = ()) -> int:
    """Run one benchmark, or all, and print the rows. Return the exit status.

    For ``all``, ``preset`` and ``overrides`` apply to the benchmarks that take them.
    """
    rows: list[results.BenchmarkRow] = []
    for name in BENCHMARKS if what == "all" else (what,):
        benchmark = _module(name)
        selected = (preset, overrides) if what != "all" or takes_presets(benchmark) else (None, ())
        found: list[results.BenchmarkRow] = benchmark.measure(size_of(name, benchmark, *selected))
        if not as_json:
            print(results.as_text(found), end="\n\n")
        rows += found
    if as_json:
        print(results.as_json(rows))
    return 0


def _module(name: str) -> Any:
    return importlib.import_module(f"five.benchmarks.{name}")


def _workload(benchmark: Any) -> Any:
    """Return the class of a benchmark's workload: ``GameWorkload`` of the module ``game``."""
    return getattr(benchmark, f"{benchmark.__name__.rpartition('.')[2].title()}Workload")
