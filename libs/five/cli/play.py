"""`five play`: open games for people and print a link to them."""

import argparse
import json
import signal
import sys
from contextlib import suppress
from typing import Any

from five.cli.agents import HELP
from five.cli.console import link
from five.cli.interruption import Interruption, default_action
from five.cli.rest_commands import save
from five.cli.run_selection import add_address, controller_of, require_agent_alone
from five.local.rest_client import ApiError, ControllerClient

PLAYERS = ("agent or newest (the newest version), a version's number, or a bot (random, scripted-easy, scripted, "
           "scripted-hard)")
OF_A_RUN = ("close", "games", "game", "recordings", "save", "ratings", "json")  # options for a run that goes on


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `five play`."""
    add_address(parser)
    parser.add_argument("--agent", help=f"{HELP}; it is served here until Ctrl-C, without a run")
    parser.add_argument("--team", choices=("radiant", "dire"), help="open a game and take heroes of this side")
    parser.add_argument("--heroes", type=int, nargs="+", metavar="N", help="heroes to take, from 0; opens a game")
    parser.add_argument("--with", dest="mates", metavar="WHO", help=f"player of your side's other heroes: {PLAYERS}; "
                        "opens a game")
    parser.add_argument("--against", metavar="WHO", help="player of the other side, as for --with; opens a game")
    parser.add_argument("--seed", type=int, help="seed of the game; opens a game")
    parser.add_argument("--close", metavar="GAME", help="end a game without a result")
    parser.add_argument("--games", action="store_true", help="print the games with people, as JSON")
    parser.add_argument("--game", metavar="GAME", help="print one game with people, as JSON")
    parser.add_argument("--recordings", action="store_true", help="print the recorded games, as JSON")
    parser.add_argument("--save", metavar="GAME", help="write a recorded game to a file")
    parser.add_argument("--out", metavar="FILE", help="file of --save (default GAME.view)")
    parser.add_argument("--ratings", action="store_true", help="print the ratings of people")
    parser.add_argument("--json", action="store_true", help="print what can be played, or the opened game, as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Open a game if the arguments describe one, and print a link. Return the exit status. Raises AgentUnavailable,
    ApiError, RunUnavailable."""
    require_agent_alone(arguments)
    if arguments.agent:
        return _serve_agent(arguments)
    controller = controller_of(arguments)
    if arguments.close:
        controller.delete(f"play/games/{arguments.close}")
        print(f"game {arguments.close} closed")
    elif arguments.ratings:
        _print_ratings(controller, arguments.json)
    elif arguments.recordings:
        print(json.dumps(controller.get("play/recordings"), indent=2))
    elif arguments.save:
        save(controller, f"play/recordings/{arguments.save}", arguments.save, arguments)
    elif arguments.games or arguments.game:
        print(json.dumps(controller.get(f"play/games/{arguments.game}" if arguments.game else "play/games"), indent=2))
    elif arguments.json:
        request = _game_request(arguments)
        print(json.dumps(controller.post("play/games", request) if request else controller.get("play"), indent=2))
    else:
        _link(controller, _game_request(arguments))
    return 0


def _serve_agent(arguments: argparse.Namespace) -> int:
    """Serve a packed agent until Ctrl-C, or until the terminal is closed."""
    for option in OF_A_RUN:
        if getattr(arguments, option):
            raise ApiError(f"--agent {arguments.agent} --{option}: not possible with a packed agent, which is served "
                           "for this command only; use the page Play")
    with default_action():
        from five.local.version_host import host_version  # seconds
        from five.packed_agents.folder import find_agent
        from five.services.controller.console.static_files import BUILT

    if not (BUILT / "index.html").is_file():
        raise ApiError(f"{BUILT} is missing, so there is no page to play on: `make console` builds it, in half a "
                       "minute")
    agent = find_agent(arguments.agent)
    for change in agent.rule_changes:
        print(f"the rules have changed since this agent was evaluated: {change}", file=sys.stderr)
    card, spec = agent.card, agent.spec
    meta = {"schema": spec.schema, "layout": spec.layout.hash}
    with Interruption(signal.SIGHUP) as interruption, suppress(KeyboardInterrupt):
        with host_version(agent.config, card.training.version, agent.playing_tensors(), meta,
                          lambda text: print(text, file=sys.stderr), interruption.raising, interruption.hurried
                          ) as cluster:
            with interruption.raising():
                controller = ControllerClient(cluster.folder.cluster().rest, cluster.folder.operator_token())
                print(f"agent {card.name}: version {card.training.version} on the page; Ctrl-C ends it")
                _link(controller, _game_request(arguments))
            while not interruption.wait(1.0):
                cluster.check()
    return 0


def _game_request(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the request body that opens the game; empty if the arguments describe no game."""
    return {name: value for name, value in {
        "team": None if arguments.team is None else int(arguments.team == "dire"), "heroes": arguments.heroes,
        "with": arguments.mates, "against": arguments.against, "seed": arguments.seed}.items() if value is not None}


def _link(controller: ControllerClient, request: dict[str, Any]) -> None:
    if request:
        opened = controller.post("play/games", request)
        names = ", ".join(seat["name"] for seat in opened["seats"])
        print(f"game {opened['game']}: you play {names}; the agent plays until you join")
    else:
        offer = controller.get("play")
        if offer["why"]:
            print(offer["why"])
    print(link(controller).replace("/#login=", "/play#login="))
    print("(valid once, for ten minutes)")


def _print_ratings(controller: ControllerClient, as_json: bool) -> None:
    ratings = controller.get("play/ratings")["ratings"]
    if as_json:
        print(json.dumps(ratings, indent=2))
        return
    for row in ratings:
        print(f"{row['name']:24} {row['mu']:6.1f} ± {row['sigma']:.1f}   won {row['won']}, lost {row['lost']}, "
              f"drawn {row['drawn']}, abandoned {row['abandoned']}")
    if not ratings:
        print("no ratings yet: no person has played")
