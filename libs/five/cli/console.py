"""`five console`: print a one-time link to a run's console."""

import argparse

from five.cli.run_selection import add_address, controller_of
from five.local.rest_client import ControllerClient


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `five console`."""
    add_address(parser)
    parser.add_argument("--role", choices=("viewer", "operator"), help="role of the link; by default the token's")


def run(arguments: argparse.Namespace) -> int:
    """Print a link. Return the exit status. Raises ApiError, RunUnavailable."""
    print(link(controller_of(arguments), arguments.role))
    return 0


def link(controller: ControllerClient, role: str | None = None) -> str:
    """Return an address that logs in one browser, once, within ten minutes. Raises ApiError."""
    return controller.url + str(controller.post("session/links", {"role": role} if role else {})["path"])
