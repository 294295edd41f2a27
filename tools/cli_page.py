"""``python -m tools.cli_page [FILE]`` writes docs/cli.md from the parser of the `five` command."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from five.cli.main import parser

PAGE = Path(__file__).resolve().parents[1] / "docs" / "cli.md"
HEAD = """# The `five` command

Every command and option, made from the parser by `python -m tools.cli_page`. `make setup` puts the command at
`.venv/bin/five`; `five COMMAND --help` prints the same. What fails as expected is one line on the error output and exit
status 2.
"""
WHICH = {"run", "url", "token_file"}
SILENT = (argparse._HelpAction, argparse._SubParsersAction)


def commands(of: argparse.ArgumentParser, words: str = "") -> Iterator[tuple[argparse.ArgumentParser, str]]:
    """Every parser that can be called, below ``of``, with what its command is for."""
    groups = [action for action in of._actions if isinstance(action, argparse._SubParsersAction)]
    if not any(group.required for group in groups):
        yield of, words
    for group in groups:
        helps = {choice.dest: choice.help or "" for choice in group._choices_actions}
        for name, child in group.choices.items():
            yield from commands(child, helps.get(name) or child.description or "")


def page() -> str:
    """The text of docs/cli.md."""
    found = list(commands(parser()))
    (status,) = (command for command, _ in found if command.prog == "five status")
    run = "".join(f"| `{named(action)}` | {meaning(action)} |\n" for action in status._actions if action.dest in WHICH)
    return f"{HEAD}\n## Which run\n\n| argument | meaning |\n|---|---|\n{run}{''.join(map(section, found))}"


def section(of: tuple[argparse.ArgumentParser, str]) -> str:
    """One command's part of the page."""
    command, words = of
    arguments = [action for action in command._actions if not isinstance(action, SILENT)]
    asks = WHICH <= {action.dest for action in arguments}
    text = f"\n## {command.prog}\n\n{words[:1].upper()}{words[1:]}."
    if asks:
        arguments = [action for action in arguments if action.dest not in WHICH]
        text += " It takes the options of [which run](#which-run)."
    rows = "".join(f"| `{named(action)}` | {meaning(action)} |\n" for action in arguments)
    return f"{text}\n\n| argument | meaning |\n|---|---|\n{rows}" if rows else f"{text}\n"


def named(action: argparse.Action) -> str:
    """An argument as it is typed: ``--games N``, ``FILE``, ``[KEY]``."""
    value = str(action.metavar or (action.dest.upper() if action.option_strings else action.dest))
    value = {"?": f"[{value}]", "*": f"[{value} ...]", "+": f"{value} ..."}.get(str(action.nargs), value)
    if not action.option_strings:
        return value
    flag = action.option_strings[-1]
    return flag if action.nargs == 0 else f"{flag} {value}"


def meaning(action: argparse.Action) -> str:
    """Its help, its choices, and its default, where the help does not say them."""
    words, default = (action.help or "").replace("%%", "%"), action.default
    parts = [words] if words else []
    if action.choices is not None and not all(str(choice) in words for choice in action.choices):
        parts.append(" or ".join(f"`{choice}`" for choice in action.choices))
    if action.nargs != 0 and default not in (None, "", [], argparse.SUPPRESS) and "default" not in words \
            and f"({default})" not in words:
        parts.append(f"default {default}")
    return "; ".join(parts).replace("|", "\\|").replace("\n", " ")


def main(arguments: list[str]) -> None:
    """Writes the page."""
    (Path(arguments[0]) if arguments else PAGE).write_text(page())


if __name__ == "__main__":
    main(sys.argv[1:])
