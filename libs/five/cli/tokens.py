"""`five token`: create, list and revoke named tokens of the REST API."""

import argparse
import json
from pathlib import Path

from pydantic import ValidationError

from five.local.rest_client import ApiError
from five.local.run_folder import find_run
from five.services.controller.http import tokens


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `five token`."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    new = verbs.add_parser("new", help="make a token; it is printed once and kept nowhere")
    new.add_argument("name", help="who events say it was")
    new.add_argument("--role", choices=("viewer", "operator"), default="viewer", help="viewer (default) or operator")
    new.add_argument("--expires", help="when it ends: 30d, 12h, or a date (by default never)")
    listing = verbs.add_parser("list", help="the tokens of a run on this machine")
    revoke = verbs.add_parser("revoke", help="take a token of a run on this machine off the list")
    revoke.add_argument("name", help="its name")
    for verb in (new, listing, revoke):
        place = verb.add_mutually_exclusive_group()
        place.add_argument("--run", help="a run on this machine, by its name"
                           + ("; without it and --file nothing is written" if verb is new else " (the last one)"))
        place.add_argument("--file", type=Path, help="a file of tokens, wherever it is")


def run(arguments: argparse.Namespace) -> int:
    """Run one of the verbs. Return the exit status. Raises ApiError, RunUnavailable."""
    try:
        match arguments.verb:
            case "new":
                _new(arguments)
            case "list":
                for entry in tokens.read(_place(arguments)):
                    until = f"until {entry.expires:%Y-%m-%d %H:%M %Z}" if entry.expires else ""
                    print(f"{entry.name:<24} {entry.role:<10} {until}".rstrip())
            case _:
                path = _place(arguments)
                known = tokens.read(path)
                kept = [entry for entry in known if entry.name != arguments.name]
                if len(kept) == len(known):
                    raise ApiError(f"{path} lists no token {arguments.name!r}; there are "
                                  f"{', '.join(e.name for e in known) or 'none'}")
                tokens.write(path, kept)
                print(f"{arguments.name} is off {path}: a running controller refuses it from now on")
    except ValidationError as error:
        raise ApiError("; ".join(e["msg"] for e in error.errors(include_input=False))) from None
    except (OSError, ValueError) as error:
        raise ApiError(str(error)) from None
    return 0


def _place(arguments: argparse.Namespace) -> Path:
    return arguments.file or find_run(arguments.run).tokens


def _new(arguments: argparse.Namespace) -> None:
    expires = tokens.parse_expiry(arguments.expires) if arguments.expires else None
    token, entry = tokens.make(arguments.name, arguments.role, expires)
    if arguments.file or arguments.run:
        path = _place(arguments)
        tokens.write(path, [*(tokens.read(path) if path.exists() else []), entry])
        print(f"token (shown this once): {token}\nits entry is in {path}: a running controller takes it at once")
        return
    print(f"token (shown this once): {token}\nentry for the file of tokens:")
    print(json.dumps(entry.model_dump(mode="json", exclude_none=True)))
