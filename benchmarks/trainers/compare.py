"""Speed of whole trainers on the games of ``laptop-1v1``, one after another on this machine, as a table.

    make bench-trainers                # or: python benchmarks/trainers/compare.py --seconds 120 --rounds 2

Each trainer runs alone for ``--seconds`` after 12 s of warm-up, in self-play with networks of equal size. Ratios are
of Five's hero-steps a processor-second to the other trainer's in the same round.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from five.benchmarks import train
from five.benchmarks.child_process import prepare
from five.benchmarks.results import machine
from five.run.load import load

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# Ratings, people's games, bots and past versions are not part of the other trainers.
OVERRIDES = ("services.evaluator.enabled=false", "services.play.enabled=false", "league.past_opponent_share=0",
             "schedules.scripted_fraction={initial: 0, ramps: []}", "name=compare-trainers")
TRAINERS = ("five", "pufferlib", "sample-factory")


def five(seconds: float) -> dict[str, float]:
    """Measure a whole run of Five."""
    speed = train.run(load("laptop-1v1", OVERRIDES), seconds)
    return {"hero_steps_per_second": speed.hero_steps_per_second,
            "cores": speed.hero_steps_per_second / speed.hero_steps_per_cpu_second,
            "hero_steps_per_cpu_second": speed.hero_steps_per_cpu_second}


def other(trainer: str, seconds: float, *options: str) -> dict[str, float]:
    """Measure another project's trainer in its own virtual environment, with options of its script.

    Raises FileNotFoundError if that is not installed, and CalledProcessError if the trainer fails.
    """
    python = ROOT / "build/peers" / trainer / "bin/python"
    if not python.exists():
        raise FileNotFoundError(f"{python} does not exist: `make bench-trainers` installs it")
    script = HERE / f"train_{trainer.replace('-', '_')}.py"
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "speed.json")
        subprocess.run([python, script, output, str(seconds), *options], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL, env=os.environ | {"PYTHONPATH": str(ROOT / "libs")})
        found: dict[str, float] = json.loads(output.read_text(encoding="utf-8"))
    return found


def main(arguments: list[str]) -> None:
    """Measure by turns, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120.0, help="of each measurement (default: 120)")
    parser.add_argument("--rounds", type=int, default=2, help="of all trainers by turns (default: 2)")
    parser.add_argument("--trainers", nargs="+", choices=TRAINERS, default=TRAINERS, help="default: all three")
    options = parser.parse_args(arguments)
    prepare()
    conditions = machine()
    print(f"{conditions['cpu']}, {conditions['cores']} cores, load before {conditions['load']}", flush=True)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in options.trainers}
    for _ in range(options.rounds):
        for name, measured in found.items():
            measured.append(five(options.seconds) if name == "five" else other(name, options.seconds))
            print(f"  {name}: {json.dumps({k: round(v, 2) for k, v in measured[-1].items()})}", flush=True)
    print("\n| trainer | hero-steps/s | cores in use | hero-steps a processor-second | Five's over it |\n"
          "|---|---|---|---|---|")
    for name, measured in found.items():
        rates = [m["hero_steps_per_cpu_second"] for m in measured]
        ratios = [ours["hero_steps_per_cpu_second"] / rate
                  for ours, rate in zip(found.get("five", []), rates, strict=False)]
        print(f"| {name} | {cell(measured, 'hero_steps_per_second', 0)} | {cell(measured, 'cores', 2)} | "
              f"{cell(measured, 'hero_steps_per_cpu_second', 0)} | "
              f"{format(statistics.fmean(ratios), '.2f') if ratios else ''} |")


def cell(measured: list[dict[str, float]], key: str, digits: int) -> str:
    """Return the values of all rounds for a table's cell."""
    return "; ".join(f"{m[key]:,.{digits}f}" for m in measured)


if __name__ == "__main__":
    main(sys.argv[1:])
