"""docs/configuration.md, docs/cli.md and docs/rest.md are current and complete."""

import re

from five.cli.commands import parser
from five.run.load import load
from five.run.reference import reference
from tools import cli_page, configuration_page, rest_page


def test_configuration_page_is_current() -> None:
    assert configuration_page.PAGE.read_text() == configuration_page.page(), "python -m tools.configuration_page"


def test_cli_page_is_current() -> None:
    assert cli_page.PAGE.read_text() == cli_page.page(), "python -m tools.cli_page"


def test_rest_page_is_current() -> None:
    assert rest_page.PAGE.read_text() == rest_page.page(), "python -m tools.rest_page"


def test_configuration_page_has_each_key_once() -> None:
    rows = re.findall(r"^\| `([\w.\[\]]+)` \|", configuration_page.PAGE.read_text(), re.M)
    assert len(rows) == len(set(rows)) > 250
    for preset in ("laptop-1v1", "laptop-5v5", "gpu-node", "rerun"):
        assert leaves(load(preset).model_dump(mode="json", by_alias=True)) <= set(rows)


def leaves(tree: dict[str, object], path: str = "") -> set[str]:
    """Return the dotted keys of a configuration's values; a mapping with free keys (signals, id spaces) is one
    value."""
    found = set()
    for name, value in tree.items():
        at = f"{path}{name}"
        if isinstance(value, dict) and at not in ("rewards.weights", "model.id_rows"):
            found |= leaves(value, f"{at}.")
        else:
            found.add(at)
            if isinstance(value, list) and value and isinstance(value[0], dict):
                found |= leaves(value[0], f"{at}[].")
    return found


def test_every_command_has_a_section() -> None:
    text = cli_page.PAGE.read_text()
    (commands,) = (action.choices for action in parser()._actions if action.dest == "command" and action.choices)
    for name in commands:
        assert re.search(rf"^## five {name}\b", text, re.M), name


def test_differing_presets_are_named() -> None:
    keys = {key.path: key for section in reference({"laptop-1v1": load("laptop-1v1")}) for key in section.keys}
    assert keys["learning.batch_samples"].presets == {"laptop-1v1": "48"}
    assert keys["learning.lstm_unroll_length"].presets == {}
