"""Entry point of the `five` command: exit statuses of errors and signals."""

import io
import os
import signal
import sys
from collections.abc import Sequence

from five.cli.interruption import default_action

SHOWN = 20  # characters before and after one that cannot be sent


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. Return the exit status.

    It is 2 after an expected failure, which is printed as one line, and 128 and the signal's number after an interrupt.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal may lack characters of names and tables. The reader of a pipe waits for each line.
            stream.reconfigure(errors="replace", line_buffering=True)
    command = "five"
    try:
        with default_action():
            from five.cli import commands  # half a second

        arguments = commands.parser().parse_args(argv)
        command = f"five {arguments.command}"
        try:
            status = commands.run(arguments)
            if sys.stdout is not None:  # None: it was closed before the start
                sys.stdout.flush()
            return status
        except BrokenPipeError:
            raise
        except commands.EXPECTED as error:
            print(f"{command}: {describe(error)}", file=sys.stderr)
            _end_output()
            return 2
    except BrokenPipeError:  # the reader has closed the pipe, as `five ... | head` does
        _end_output()
        return 1
    except KeyboardInterrupt as interrupt:
        number = signal.Signals(interrupt.args[0] if interrupt.args else signal.SIGINT)
        print(f"{command}: ended by {number.name}", file=sys.stderr)
        return 128 + number


def describe(error: Exception) -> str:
    """Return an error's text; of a failed system call the file and the reason, without its number."""
    if isinstance(error, UnicodeEncodeError):  # an argument in the terminal's encoding
        part = error.object[max(error.start - SHOWN, 0):error.end + SHOWN]
        return f"{part!a}: this text is not UTF-8; set the terminal to UTF-8"
    if isinstance(error, OSError) and error.strerror:
        file = error.filename2 or error.filename  # the second one is the target of a rename
        return error.strerror if file is None else f"{file}: {error.strerror}"
    return str(error)


def _end_output() -> None:
    """Flush standard output. If that fails, drop its text: the interpreter's last flush must not fail."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
