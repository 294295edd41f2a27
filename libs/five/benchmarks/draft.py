"""Draft: solving the tree of all line-ups of 17 heroes, five a side, and computing its leaves with a policy.

Seconds are this process's processor time on one core. ``draft.tree``: picks evaluated a second, compared with as
many numbers gathered in one call. ``draft.empty`` and ``draft.second``: time of an empty draft and of one after its
first pick. ``draft.table`` and ``draft.memory``: size of the table and memory of the solver. ``draft.parts``: games
of all sets of heroes on both sides with their network outputs. ``draft.leaves``: line-ups a second combined from
these, compared with line-ups in games of their own. ``draft.whole``: time of all line-ups at either rate. ``python
-m five.benchmarks.draft`` computes a whole table.
"""

import argparse
import resource
import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
import psutil
import torch

from dota.config import GameConfig
from dota.spaces import Layout
from five.agent.draft.advice import advise
from five.agent.draft.leaves import HeroPool, LeafTable
from five.agent.draft.pick_order import OPENAI_FIVE_ORDER, RADIANT
from five.agent.model.policy import Policy
from five.benchmarks.results import BenchmarkRow, machine, row
from five.evaluation.draft_table import make
from five.evaluation.line_up_values import BATCH, FACTORED_BATCH, FactoredReader, PerGameReader
from five.run.load import load

POOL = "rerun"  # preset with the published pool


@dataclass(frozen=True)
class DraftWorkload:
    """Workload of the benchmark ``draft``. Defaults: the published pool's number of heroes, and a team of five."""

    heroes: int = 17
    team: int = 5
    order: str = OPENAI_FIVE_ORDER
    preset: str = "laptop-5v5"
    line_ups: int = 20_000
    in_games: int = 512


def picks(heroes: int, order: str) -> int:
    """Return the number of picks that a tree evaluates: the open picks of each pair of sets at each level."""
    total, r, d = 0, 0, 0
    for team in order:
        total += comb(heroes, r) * comb(heroes - r, d) * (heroes - r - d)
        r, d = (r + 1, d) if team == RADIANT else (r, d + 1)
    return total


def measure(size: DraftWorkload | None = None) -> list[BenchmarkRow]:
    """Return the rows ``draft.*``."""
    size = size or DraftWorkload()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return [*_tree(size), *_leaves(size)]
    finally:
        torch.set_num_threads(before)


def _tree(size: DraftWorkload) -> list[BenchmarkRow]:
    pool = HeroPool(tuple(f"hero{i}" for i in range(size.heroes)), size.team)
    rng = np.random.default_rng(0)
    leaves = LeafTable(pool, rng.random(pool.shape, dtype=np.float32))
    advise(leaves, order=size.order)  # builds the index of sets, once
    began = time.process_time()
    advise(leaves, order=size.order)
    seconds = time.process_time() - began
    weighed = picks(size.heroes, size.order)
    first = pool.heroes[0]
    began = time.process_time()
    advise(leaves, [first] * (size.order[0] == RADIANT), [first] * (size.order[0] != RADIANT), order=size.order)
    second = time.process_time() - began
    tracemalloc.start()
    advise(leaves, order=size.order)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The same numbers gathered in one call: the fastest indexing on this machine.
    flat, index = leaves.win.reshape(-1), rng.integers(0, pool.line_ups, min(weighed, 1 << 24))
    began = time.process_time()
    flat[index].max()
    gathered = len(index) / (time.process_time() - began)
    conditions = machine(heroes=size.heroes, team=size.team, line_ups=pool.line_ups)
    return [
        row("draft.tree", weighed / seconds, "picks/s", gathered, conditions),
        row("draft.empty", seconds, "s", None, conditions),
        row("draft.second", second, "s", None, conditions),
        row("draft.table", leaves.win.nbytes / 2**20, "MiB", None, conditions),
        row("draft.memory", peak / 2**20, "MiB", None, conditions)]


def _new_policy(size: DraftWorkload) -> tuple[Policy, GameConfig, HeroPool]:
    """Return an untrained policy of the preset's network, its game, and a pool as large as the published one."""
    config = load(size.preset)
    heroes = list(load(POOL).game.hero_pool[:size.heroes])
    game = config.game.model_copy(update={"hero_pool": heroes, "heroes_per_team": size.team})
    torch.manual_seed(0)
    return Policy(Layout(game), config.model).eval().requires_grad_(False), game, HeroPool.from_game(heroes, size.team)


def _leaves(size: DraftWorkload) -> list[BenchmarkRow]:
    policy, game, pool = _new_policy(size)
    rng = np.random.default_rng(0)
    games = PerGameReader(policy, game, pool)
    chosen = rng.integers(0, pool.line_ups, size.in_games)
    games.read(chosen[:BATCH])
    began = time.process_time()
    games.read(chosen)
    alone = size.in_games / (time.process_time() - began)
    began = time.process_time()
    parts = FactoredReader(policy, game, pool)
    making = time.process_time() - began
    chosen = rng.integers(0, pool.line_ups, size.line_ups)
    parts.read(chosen[:FACTORED_BATCH])
    began = time.process_time()
    parts.read(chosen)
    rate = size.line_ups / (time.process_time() - began)
    conditions = machine(preset=size.preset, heroes=len(pool.heroes), team=pool.team, sets=len(pool.radiant))
    return [row("draft.parts", making, "s", None, conditions),
            row("draft.leaves", rate, "line-ups/s", alone, conditions),
            row("draft.whole", (making + pool.line_ups / rate) / 60, "min of a core", pool.line_ups / alone / 60,
                conditions)]


def main(argv: Sequence[str] | None = None) -> int:
    """Compute a whole table once and print its cost. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m five.benchmarks.draft", description=main.__doc__)
    parser.add_argument("--preset", default=DraftWorkload.preset, help="whose network (laptop-5v5)")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args(argv)
    policy, game, pool = _new_policy(DraftWorkload(preset=arguments.preset))
    began, spent = time.monotonic(), time.process_time()
    before = psutil.Process().memory_info().rss
    leaves = make(policy, game, pool, {}, threads=arguments.threads)
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{pool.line_ups:,} line-ups, {np.isfinite(leaves.win).sum():,} of them computed: "
          f"{time.process_time() - spent:.0f} s of processor in {time.monotonic() - began:.0f} s; "
          f"{(peak - before) / 2**20:.0f} MiB of memory at the peak, "
          f"{leaves.win.nbytes / 2**20:.1f} of them the table")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
