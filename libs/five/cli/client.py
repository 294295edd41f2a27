"""`five client`: start a Dota 2 client, and check that policies can play in it or let one play."""

import argparse
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from five.cli import numbers
from five.cli.agents import HELP
from five.cli.interruption import default_action
from five.cli.run_selection import require_agent_alone
from five.local.run_folder import find_run

if TYPE_CHECKING:  # they need torch
    from dota.config import GameConfig
    from five.agent.model.policy import Policy
    from five.real_client.installation import Installation

SIDES = {"radiant": (2,), "dire": (3,), "both": (2, 3)}
HERO_PREFIX = "npc_dota_hero_"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `five client`."""
    parser.add_argument("--dota", type=Path, required=True, metavar="PATH",
                        help="folder \"dota 2 beta\" of a Steam library")
    parser.add_argument("--agent", help=f"{HELP}; without an agent or a run the client is only checked")
    parser.add_argument("--run", help="name of a run of this machine whose version plays")
    parser.add_argument("--version", type=numbers.version, default=-1, help="version of the run; by default the newest")
    parser.add_argument("--side", choices=SIDES, default="radiant", help="side that the agent plays; the client's own "
                        "bots play the other")
    parser.add_argument("--games", type=numbers.games, default=1, help="games to play")
    parser.add_argument("--restarts", type=numbers.integer(0), default=2, help="failures of the client after which a "
                        "game begins again")
    parser.add_argument("--seed", type=numbers.seed, default=0, help="seed of the agent's choices and heroes")
    parser.add_argument("--greedy", action="store_true", help="take the most probable actions")
    parser.add_argument("--real-time", action="store_true", help="do not let the game wait for the agent")
    parser.add_argument("--seconds", type=numbers.positive(), default=30.0, help="length of the check")
    parser.add_argument("--timescale", type=numbers.positive(), default=1.0, help="game seconds a second, at most")
    parser.add_argument("--ports", type=numbers.integer(1, 65535), nargs=2, metavar="PORT",
                        help="ports of Radiant's and of Dire's world states; by default 12120 and 12121")
    parser.add_argument("--files", type=Path, metavar="FOLDER", help="new folder that keeps the check's bots and "
                        "console log; by default they are removed")


def run(arguments: argparse.Namespace) -> int:
    """Run the command. Return the exit status: 1 if the check finds a problem. Raises AgentUnavailable, ClientFailed,
    ClientUnavailable, RunUnavailable."""
    with default_action():
        from five.real_client.installation import find_installation

    require_agent_alone(arguments)
    installation = find_installation(arguments.dota)
    print(f"client {installation.version} of {installation.date} in {installation.game}")
    if arguments.agent or arguments.run:
        return _play(arguments, installation)
    return _check(arguments, installation)


def _check(arguments: argparse.Namespace, installation: "Installation") -> int:
    from five.real_client.check import HEROES, run_check
    from five.real_client.client_process import ClientOptions
    from five.real_client.session import Session, SessionOptions

    radiant, dire = arguments.ports or ClientOptions().ports
    options = SessionOptions({2: "agent", 3: "agent"}, HEROES,
                             ClientOptions(timescale=arguments.timescale, ports=(radiant, dire)))
    with Session(installation, options, arguments.files) as session:
        check = run_check(session, arguments.seconds, print)
    for problem in check.problems:
        print(f"five client: {problem}", file=sys.stderr)
    print(f"{check.frames} world states in {check.game_seconds:.1f} game seconds, at most {check.largest} bytes: "
          f"{'problems above' if check.problems else 'a policy can play'}")
    return 1 if check.problems else 0


def _play(arguments: argparse.Namespace, installation: "Installation") -> int:
    """Let an agent play games, and print each result."""
    from dota.config import evaluation_game
    from five.real_client.client_process import ALL_PICK, MID_ONLY_1V1, ClientOptions
    from five.real_client.policy_player import PolicyPlayer
    from five.real_client.session import Session, SessionOptions, TeamPlayer, play_games

    policy, config = _policy(arguments)
    game = evaluation_game(config)
    radiant, dire = arguments.ports or ClientOptions().ports
    client = ClientOptions(MID_ONLY_1V1 if game.mode == "1v1_mid" else ALL_PICK, game.frameskip, arguments.timescale,
                           (radiant, dire))
    teams = SIDES[arguments.side]
    options = SessionOptions({team: "agent" if team in teams else "builtin" for team in (2, 3)},
                             line_up(game, arguments.seed), client, scripted=True, lockstep=not arguments.real_time)
    print(f"an agent of patch {game.patch} plays another patch and map: the result does not judge it", file=sys.stderr)

    def players() -> Mapping[int, TeamPlayer]:
        return {team: PolicyPlayer(policy, game, arguments.seed + team, arguments.greedy) for team in teams}

    try:
        players()  # before the client starts, which takes minutes
    except ValueError as error:
        raise RuntimeError(str(error)) from None
    winners = play_games(lambda: Session(installation, options), players, arguments.games, arguments.restarts, print)
    print(f"Radiant won {winners.count(2)} of {len(winners)} games")
    return 0


def _policy(arguments: argparse.Namespace) -> "tuple[Policy, GameConfig]":
    """Return the policy and its game."""
    if arguments.agent:
        from five.packed_agents.folder import find_agent

        agent = find_agent(arguments.agent)
        return agent.policy(), agent.config.game
    from five.evaluation.archived_versions import ArchivedVersions

    archive = ArchivedVersions(find_run(arguments.run))
    number, policy, _ = archive.load(arguments.version)
    print(f"version {number} plays")
    return policy, archive.config.game


def line_up(game: "GameConfig", seed: int) -> dict[int, list[str]]:
    """Return five heroes by team from the game's pool; the teams share heroes only if the pool has less than ten. In a
    game of one a side the other four stand idle."""
    pool = random.Random(seed).sample(game.hero_pool, len(game.hero_pool))
    pool = (pool * 10)[:10]
    if game.heroes_per_team == 1:
        pool[5] = pool[0]
    names = [HERO_PREFIX + hero for hero in pool]
    return {2: names[:5], 3: names[5:]}
