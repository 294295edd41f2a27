"""`five console`: a one-time link into the console of a run."""

import argparse

from five.cli.run_selection import add_address, controller_of
from five.local.rest_client import Controller


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `five console`."""
    add_address(parser)
    parser.add_argument("--role", choices=("viewer", "operator"), help="what the link lets one do; by default as much "
                        "as the token")


def run(arguments: argparse.Namespace) -> int:
    """Prints a link. Raises Refused, NoRun."""
    print(link(controller_of(arguments), arguments.role))
    return 0


def link(controller: Controller, role: str | None = None) -> str:
    """Address that logs one browser in, once, within ten minutes. Raises Refused."""
    return controller.url + str(controller.post("session/links", {"role": role} if role else {})["path"])
