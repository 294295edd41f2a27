"""A draft: solving the tree over all line-ups of 17 heroes, five a side; reading leaves from a policy in real games.

Seconds are of this process' processor time, on one core. ``draft.tree`` picks weighed a second, beside as many numbers
gathered in one call; ``draft.empty`` and ``draft.second`` the time of an empty draft and of one after its first pick;
``draft.table`` and ``draft.memory`` the table's size and what solving takes beside it; ``draft.leaves`` line-ups read a
second, beside the games alone without a network; ``draft.whole`` what all line-ups take at that rate.
"""

import time
import tracemalloc
from dataclasses import dataclass
from math import comb

import numpy as np
import torch

from dota.spaces import Layout
from five.agent.draft.advice import advise
from five.agent.draft.leaves import Leaves, Pool
from five.agent.draft.order import OF_FIVE, RADIANT
from five.agent.model.policy import Policy
from five.cli.benchmarks.table import Row, machine, row
from five.cli.offline.leaves import BATCH, Reader
from five.cli.offline.match import evaluation_game
from five.run.line_ups import LineUps
from five.run.load import load


@dataclass(frozen=True)
class Size:
    """How much is measured. The defaults are the published pool's number of heroes and the laptop's team of five."""

    heroes: int = 17
    team: int = 5
    order: str = OF_FIVE
    preset: str = "laptop-5v5"
    line_ups: int = 512


def picks(heroes: int, order: str) -> int:
    """How many picks a tree weighs: those open in each pair of sets of each level."""
    total, r, d = 0, 0, 0
    for team in order:
        total += comb(heroes, r) * comb(heroes - r, d) * (heroes - r - d)
        r, d = (r + 1, d) if team == RADIANT else (r, d + 1)
    return total


def measure(size: Size | None = None) -> list[Row]:
    """The rows."""
    size = size or Size()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return [*_tree(size), *_leaves(size)]
    finally:
        torch.set_num_threads(before)


def _tree(size: Size) -> list[Row]:
    pool = Pool(tuple(f"hero{i}" for i in range(size.heroes)), size.team)
    rng = np.random.default_rng(0)
    leaves = Leaves(pool, rng.random(pool.shape, dtype=np.float32))
    advise(leaves, order=size.order)  # numbers the sets, once
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
    # The same numbers gathered in one call: what this machine does with such an index at best.
    flat, index = leaves.win.reshape(-1), rng.integers(0, pool.line_ups, min(weighed, 1 << 24))
    began = time.process_time()
    flat[index].max()
    gathered = len(index) / (time.process_time() - began)
    told = machine(heroes=size.heroes, team=size.team, line_ups=pool.line_ups)
    return [
        row("draft.tree", weighed / seconds, "picks/s", gathered, told),
        row("draft.empty", seconds, "s", None, told),
        row("draft.second", second, "s", None, told),
        row("draft.table", leaves.win.nbytes / 2**20, "MiB", None, told),
        row("draft.memory", peak / 2**20, "MiB", None, told)]


def _leaves(size: Size) -> list[Row]:
    config = load(size.preset)
    torch.manual_seed(0)
    policy = Policy(Layout(config.game), config.model).eval().requires_grad_(False)
    pool = Pool.of_game(list(config.game.hero_pool), config.game.heroes_per_team)
    chosen = np.random.default_rng(0).integers(0, pool.line_ups, size.line_ups)
    reader = Reader(policy, config.game, pool)
    reader.read(chosen[:BATCH])
    began = time.process_time()
    reader.read(chosen)
    rate = size.line_ups / (time.process_time() - began)
    line_ups = LineUps(evaluation_game(config.game), pool, BATCH)
    began = time.process_time()
    for at in range(0, size.line_ups, BATCH):
        line_ups.seen(chosen[at:at + BATCH])
    worlds = size.line_ups / (time.process_time() - began)
    told = machine(preset=size.preset, team=pool.team)
    whole = Pool(tuple(f"hero{i}" for i in range(size.heroes)), size.team).line_ups
    return [row("draft.leaves", rate, "line-ups/s", worlds, told),
            row("draft.whole", whole / rate / 3600, "h of a core", None, told)]
