"""Training workload of the core's profile-guided optimisation, run by ``make build PGO=1``.

    python -m tools.record_profile LIBS

LIBS holds a copy of the package ``dota`` with an instrumented core. The workload is games of the paper's size between
scripted players of all strengths, with both teams' packed observations, and games of one against one. It takes half a
minute to two minutes: an instrumented core is slow.
"""

import argparse
import math
import sys

STEPS_A_MINUTE = 450
# Controller of both sides, heroes of a team, minutes of the game.
GAMES = (("HARD", 5, 16.0), ("SCRIPTED", 5, 6.0), ("RANDOM", 5, 2.0), ("HARD", 1, 5.0))


def take_from(libs: str) -> None:
    """Import ``dota`` from that folder, before an editable install."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
    sys.path.insert(0, libs)


def play(controller: str, heroes: int, steps: int, games: int, seed: int) -> None:
    """Play ``games`` games for ``steps`` timesteps. Join the packed observations of every fifth step, and take and
    restore a snapshot of each game at the end."""
    from dota.config import GameConfig
    from dota.packing import join_f16
    from dota.vec_game import Controller, VecGame

    config = GameConfig() if heroes > 1 else GameConfig(mode="1v1_mid", heroes_per_team=1)
    played = VecGame(config, games, seed=seed, auto_reset=True, observations="packed")
    specs = played.layout.array_specs()
    played.controllers[:] = Controller[controller]
    for step in range(steps):
        played.step()
        if step % 5 == 0:
            for name in played.packed:
                join_f16(played.packed_obs(name), math.prod(specs[name][0]))
    for game in range(games):
        played.restore(game, played.snapshot(game))
        played.hash(game)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libs", help="folder with a copy of the package dota and the instrumented core")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the minutes played")
    given = parser.parse_args()
    take_from(given.libs)
    for seed, (controller, heroes, minutes) in enumerate(GAMES):
        play(controller, heroes, max(1, round(given.scale * minutes * STEPS_A_MINUTE)), games=2, seed=seed)


if __name__ == "__main__":
    main()
