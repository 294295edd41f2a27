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
    new = verbs.add_parser("new", help="create a token; it is printed once and not stored")
    new.add_argument("name", help="name in events")
    new.add_argument("--role", choices=("viewer", "operator"), default="viewer", help="role of the token")
    new.add_argument("--expires", help="expiry: 30d, 12h, or a date (by default never)")
    listing = verbs.add_parser("list", help="list the tokens of a run of this machine")
    revoke = verbs.add_parser("revoke", help="revoke a token of a run of this machine")
    revoke.add_argument("name", help="name of the token")
    for verb in (new, listing, revoke):
        place = verb.add_mutually_exclusive_group()
        place.add_argument("--run", help="name of a run of this machine"
                           + ("; without it and --file nothing is written" if verb is new else "; by default the "
                              "last one"))
        place.add_argument("--file", type=Path, help="file of tokens")


def run(arguments: argparse.Namespace) -> int:
    """Run one of the verbs. Return the exit status. Raises ApiError, RunUnavailable."""
    try:
        match arguments.verb:
            case "new":
                _create(arguments)
            case "list":
                for entry in tokens.read(_token_path(arguments)):
                    until = f"until {entry.expires:%Y-%m-%d %H:%M %Z}" if entry.expires else ""
                    print(f"{entry.name:<24} {entry.role:<10} {until}".rstrip())
            case _:
                path = _token_path(arguments)
                known = tokens.read(path)
                kept = [entry for entry in known if entry.name != arguments.name]
                if len(kept) == len(known):
                    raise ApiError(f"{path} has no token {arguments.name!r}; it has "
                                   f"{', '.join(e.name for e in known) or 'none'}")
                tokens.write(path, kept)
                print(f"{arguments.name} revoked in {path}; a running controller refuses it from now on")
    except ValidationError as error:
        raise ApiError("; ".join(e["msg"] for e in error.errors(include_input=False))) from None
    except (OSError, ValueError) as error:
        raise ApiError(str(error)) from None
    return 0


def _token_path(arguments: argparse.Namespace) -> Path:
    return arguments.file or find_run(arguments.run).tokens


def _create(arguments: argparse.Namespace) -> None:
    expires = tokens.parse_expiry(arguments.expires) if arguments.expires else None
    token, entry = tokens.make(arguments.name, arguments.role, expires)
    if arguments.file or arguments.run:
        path = _token_path(arguments)
        tokens.write(path, [*(tokens.read(path) if path.exists() else []), entry])
        print(f"token (shown this once): {token}\nentry added to {path}; a running controller accepts it at once")
        return
    print(f"token (shown this once): {token}\nentry for the file of tokens:")
    print(json.dumps(entry.model_dump(mode="json", exclude_none=True)))
