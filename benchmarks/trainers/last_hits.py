"""What trainers learn of the games of ``laptop-1v1`` in equal time, one after another on this machine, as a table.

    make bench-trainers LEARN=20       # or: python benchmarks/trainers/last_hits.py --minutes 20

Each trainer begins with new weights and trains alone, in self-play with networks of equal size. Then its policy plays
``scripted-easy``, as often on each side.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bot_games import AGAINST, GAMES
from compare import OVERRIDES, TRAINERS, other
from measurement import WARM_UP_SECONDS

from five.benchmarks.child_process import prepare
from five.benchmarks.results import machine
from five.local.run_folder import RunFolder
from five.local.run_origin import source_commit
from rapid.atomic_file import replace_text


def five(minutes: float) -> dict[str, Any]:
    """Train a run of Five and play its newest version."""
    with tempfile.TemporaryDirectory() as place:
        def command(*arguments: str) -> str:
            return subprocess.run([sys.executable, "-m", "five.cli.main", *arguments], cwd=place, check=True, text=True,
                                  stdout=subprocess.PIPE).stdout

        options = [part for override in OVERRIDES for part in ("--set", override)]
        command("train", "--preset", "laptop-1v1", "--minutes", str(minutes), "--name", "learn", *options)
        found = json.loads(command("eval", "--run", "learn", "--offline", "--against", AGAINST, "--games", str(GAMES),
                                   "--json"))
        versions = json.loads(RunFolder(Path(place) / "runs/learn").records.read_text(encoding="utf-8"))["versions"]
    return {"hero_steps": versions[-1]["hero_steps"], **{name: found[name] for name in ("won", "drawn", "lost")},
            "last_hits": found["statistics"]["last_hits"] * found["games"],
            "game_minutes": found["mean_game_seconds"] * found["games"] / 60}


def main(arguments: list[str]) -> None:
    """Train by turns, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20.0, help="of each training (default: 20)")
    parser.add_argument("--trainers", nargs="+", choices=TRAINERS, default=TRAINERS, help="default: all three")
    parser.add_argument("--into", type=Path, help="write the results to this file as JSON, too")
    options = parser.parse_args(arguments)
    prepare()
    conditions = machine()
    print(f"{conditions['cpu']}, {conditions['cores']} cores, load before {conditions['load']}\n\n"
          f"| trainer | hero-steps, millions | last hits a minute against {AGAINST} | won, drawn, lost |\n"
          "|---|---|---|---|", flush=True)
    results = {}
    for name in options.trainers:
        found = five(options.minutes) if name == "five" else \
            other(name, 60 * options.minutes - WARM_UP_SECONDS, "--learn")
        print(f"| {name} | {found['hero_steps'] / 1e6:.1f} | {found['last_hits'] / found['game_minutes']:.2f} | "
              f"{found['won']:.0f}, {found['drawn']:.0f}, {found['lost']:.0f} |", flush=True)
        results[name] = found
        if options.into is not None:  # after each, so that a later trainer that fails loses none
            replace_text(options.into, json.dumps({"machine": conditions, "commit": source_commit(),
                                                   "minutes": options.minutes, "trainers": results}, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
