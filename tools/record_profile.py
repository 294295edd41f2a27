"""``python -m tools.record_profile LIBS`` plays what the core is to be fast at, on a core that records what it does:
the one beside the package ``dota`` in the folder LIBS. ``make build PGO=1`` runs it.

It plays games of the paper's size between scripted players of all strengths, with both teams' packed observations, and
games of one against one; half a minute to two minutes, as such a core is slow.
"""

import argparse
import math
import sys

STEPS_A_MINUTE = 450
# Who plays both sides, heroes a team, minutes of the game.
GAMES = (("HARD", 5, 16.0), ("SCRIPTED", 5, 6.0), ("RANDOM", 5, 2.0), ("HARD", 1, 5.0))


def take_from(libs: str) -> None:
    """Has ``dota`` come from that folder. An editable install must not be found first."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
    sys.path.insert(0, libs)


def play(controller: str, heroes: int, steps: int, games: int, seed: int) -> None:
    """Plays ``games`` games for ``steps`` timesteps with packed observations, sends what every fifth shows, and takes
    snapshots there and back at the end."""
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
    parser.add_argument("libs", help="folder with a copy of the package dota and the core that records")
    parser.add_argument("--scale", type=float, default=1.0, help="of the minutes that are played")
    given = parser.parse_args()
    take_from(given.libs)
    for seed, (controller, heroes, minutes) in enumerate(GAMES):
        play(controller, heroes, max(1, round(given.scale * minutes * STEPS_A_MINUTE)), games=2, seed=seed)


if __name__ == "__main__":
    main()
