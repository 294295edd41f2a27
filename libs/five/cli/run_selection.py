"""Arguments that select a run, the client of its controller, and the confirmation of a change."""

import argparse
import os
import re
import sys
from pathlib import Path

from five.local.rest_client import TOKEN_VARIABLE, ApiError, ControllerClient
from five.local.run_folder import find_run


def add_address(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that select a run."""
    parser.add_argument("--run", help="name of a run of this machine; by default the last one")
    parser.add_argument("--url", help="controller of a run elsewhere, http(s)://host:port; its token is read from "
                        f"{TOKEN_VARIABLE} or --token-file")
    parser.add_argument("--token-file", type=Path, help="file with the token")


def require_agent_alone(arguments: argparse.Namespace) -> None:
    """Raise ApiError if --agent is given with an option that selects a run or a version."""
    for option in ("run", "url"):
        if arguments.agent and getattr(arguments, option, None):
            raise ApiError(f"--agent {arguments.agent} --{option}: a packed agent needs no run; give one of the two")
    if arguments.agent and getattr(arguments, "version", -1) >= 0:
        raise ApiError(f"--agent {arguments.agent} --version {arguments.version}: a packed agent has one version")


def controller_of(arguments: argparse.Namespace) -> ControllerClient:
    """Return a client of the selected run's controller. Raises ApiError, RunUnavailable."""
    if not arguments.url:
        folder = find_run(arguments.run)
        return ControllerClient(folder.cluster().rest, token_of(arguments) or folder.operator_token())
    token = token_of(arguments)
    if not token:
        raise ApiError(f"--url needs a token of that run: set {TOKEN_VARIABLE} or use --token-file")
    return ControllerClient(arguments.url, token)


def token_of(arguments: argparse.Namespace) -> str:
    """Return the given token, '' without one. For a run of this machine only --token-file counts. Raises ApiError."""
    if arguments.token_file is not None:
        try:
            return _token(str(arguments.token_file.read_text(encoding="utf-8")), f"--token-file {arguments.token_file}")
        except OSError as error:
            raise ApiError(f"--token-file {arguments.token_file}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ApiError(f"--token-file {arguments.token_file}: not a file of text") from None
    return _token(os.environ.get(TOKEN_VARIABLE, ""), TOKEN_VARIABLE) if arguments.url else ""


def _token(text: str, source: str) -> str:
    """Return the token in a text. Raises ApiError for a text that no request can carry."""
    token = text.strip()
    if not re.fullmatch("[!-~]*", token):
        raise ApiError(f"{source}: not a token; one word of ASCII characters is expected")
    return token


def confirm(question: str) -> bool:
    """Ask a question on the terminal. Return whether the answer is yes. Raises ApiError without a terminal."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise ApiError(f"{question} There is no terminal to answer on; nothing was changed: --yes confirms")
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False
