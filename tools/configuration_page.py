"""``python -m tools.configuration_page [FILE]`` writes docs/configuration.md from the typed configuration."""

import sys
from pathlib import Path

from five.run.load import load
from five.run.reference import Key, reference

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "configuration.md"
COLUMNS = ("key", "type", "default", "unit", "meaning", "source", "presets")
HEAD = """# Configuration

Every key of a run's configuration, made from the typed classes by `python -m tools.configuration_page`.
`five config KEY` prints one, `five config SECTION` what is below it.

A configuration is YAML: `preset: NAME` and what differs from it, section by section. A preset is a file of
[configs/](../configs/). On the command line any key is changed with `--set a.b=c`. A key that there is not, or a value
of the wrong type or range, is refused before anything starts. Keys with `[]` are those of each item of a list.

A default comes from the source that is named; without one it was chosen by this project. The last column says which
presets have another value.

While a run goes on its record holds `game` and `model`: [surgery](surgery.md) changes them. The four `schedules` are
changed over REST ([a tutorial](changing-a-hyperparameter.md)); every other key is read when a service starts.
"""


def page() -> str:
    """The text of docs/configuration.md."""
    presets = {path.stem: load(path) for path in sorted((ROOT / "configs").glob("*.yaml"))}
    parts = [HEAD]
    for section in reference(presets):
        parts.append(f"\n## {section.path or 'the run'}\n\n{section.meaning}\n")
        if section.keys:
            parts.append(f"\n| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|\n")
            parts += [row(key) for key in section.keys]
    return "".join(parts)


def row(key: Key) -> str:
    """A key's line of its section's table."""
    presets = "; ".join(f"{name}: {shown(value)}" for name, value in key.presets.items())
    source = "" if key.source.startswith("chosen") else key.source
    cells = (f"`{key.path}`", cell(key.type), shown(key.default), key.unit if key.unit != "none" else "",
             cell(key.meaning), source, presets)
    return f"| {' | '.join(cells)} |\n"


def shown(value: str) -> str:
    """A value as code, long ones in full."""
    return "" if value in ("''", '""') else f"`{cell(value)}`"


def cell(text: str) -> str:
    """Text that does not end a table's cell."""
    return text.replace("|", "\\|")


def main(arguments: list[str]) -> None:
    """Writes the page."""
    (Path(arguments[0]) if arguments else PAGE).write_text(page())


if __name__ == "__main__":
    main(sys.argv[1:])
