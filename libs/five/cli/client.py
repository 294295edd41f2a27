"""`five client`: start a Dota 2 client and check that this process can play in it."""

import argparse
import sys
from pathlib import Path

from five.cli import numbers
from five.cli.interruption import default_action


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `five client`."""
    parser.add_argument("--dota", type=Path, required=True, metavar="PATH",
                        help="folder \"dota 2 beta\" of a Steam library")
    parser.add_argument("--seconds", type=numbers.positive(), default=30.0, help="length of the check")
    parser.add_argument("--timescale", type=numbers.positive(), default=1.0, help="game seconds a second, at most")
    parser.add_argument("--ports", type=numbers.integer(1, 65535), nargs=2, metavar="PORT",
                        help="ports of Radiant's and of Dire's world states; by default 12120 and 12121")
    parser.add_argument("--files", type=Path, metavar="FOLDER", help="new folder that keeps the bots and the console "
                        "log; by default they are removed")


def run(arguments: argparse.Namespace) -> int:
    """Run the command. Return the exit status: 1 if something does not work. Raises ClientFailed, ClientUnavailable."""
    with default_action():
        from five.real_client.check import HEROES, run_check
        from five.real_client.client_process import ClientOptions
        from five.real_client.installation import find_installation
        from five.real_client.session import Session, SessionOptions

    installation = find_installation(arguments.dota)
    print(f"client {installation.version} of {installation.date} in {installation.game}")
    radiant, dire = arguments.ports or ClientOptions().ports
    options = SessionOptions({2: "agent", 3: "agent"}, HEROES,
                             ClientOptions(timescale=arguments.timescale, ports=(radiant, dire)))
    with Session(installation, options, arguments.files) as session:
        check = run_check(session, arguments.seconds, lambda line: print(line, flush=True))
    for problem in check.problems:
        print(f"five client: {problem}", file=sys.stderr)
    print(f"{check.frames} world states in {check.game_seconds:.1f} game seconds, at most {check.largest} bytes: "
          f"{'problems above' if check.problems else 'a policy can play'}")
    return 1 if check.problems else 0
