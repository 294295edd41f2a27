"""`five dotaservice`: serve games to trainers that speak dotaservice's protocol, without a run."""

import argparse
import json
import os
from collections.abc import Sequence

from five.cli import numbers
from five.cli.interruption import default_action
from five.run.config import RunConfig
from five.run.load import apply_overrides, validate

SECTION = "services.dotaservice"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `five dotaservice`."""
    parser.add_argument("--games", type=numbers.games, help="games side by side, each with a port of its own (1)")
    parser.add_argument("--port", type=numbers.integer(0), help="port of the first game (13337); 0: free ports")
    parser.add_argument("--host", help="address to listen on, without authentication (127.0.0.1)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
                        help="change a value of the configuration, e.g. services.dotaservice.bot=scripted-hard")


def run(arguments: argparse.Namespace) -> int:
    """Serve until Ctrl-C. Return the exit status. Raises ConfigError."""
    overrides = overrides_of(arguments)
    configuration("", overrides)
    with default_action():
        from five.services.dotaservice.__main__ import serve_games  # a second
        from rapid.standalone_service import start_standalone

    argv = ["--config", "defaults", *(word for override in overrides for word in ("--set", override))]
    with start_standalone("dotaservice", configuration, argv) as service:
        service.critical_tasks.run(serve_games(service))
    return 0


def overrides_of(arguments: argparse.Namespace) -> list[str]:
    """Return the configuration's overrides that the arguments stand for. Games are simulated on all cores unless --set
    says otherwise; --games, --port and --host replace what --set says."""
    threads = min(arguments.games or 1, os.cpu_count() or 1)
    named = {"games": arguments.games, "port": arguments.port, "host": arguments.host}
    return [f"{SECTION}.threads={threads}", *arguments.overrides,
            *(f"{SECTION}.{key}={json.dumps(value)}" for key, value in named.items() if value is not None)]


def configuration(_: str, overrides: Sequence[str]) -> RunConfig:
    """Return the default configuration with overrides. Raises ConfigError."""
    return validate(apply_overrides({}, overrides), "five dotaservice")
