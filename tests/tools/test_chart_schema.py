"""The chart's schema of run.overrides accepts and refuses the same values as RunConfig."""

import json
import re
from collections.abc import Iterator
from typing import Any, get_args

import jsonschema
import pytest
import yaml
from pydantic import TypeAdapter, ValidationError

from dota.config import SignalName
from five.agent.config import IdSpace
from five.run.load import load, presets
from tools.chart_facts import CHART, SCHEMA
from tools.chart_schema import COMPUTED, as_text, overrides, replaced_keys, with_overrides

DRAFT7 = jsonschema.Draft7Validator


@pytest.fixture(scope="module")
def check() -> jsonschema.Draft7Validator:
    schema = overrides()
    DRAFT7.check_schema(schema)
    return DRAFT7(schema)


def refused(check: Any, tree: Any) -> list[str]:
    return [".".join(map(str, error.absolute_path)) for error in check.iter_errors(tree)]


def sections(schema: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Yield path and schema of every mapping of known keys above a key of the preset."""
    if "properties" in schema:
        yield at, schema
        for key, below in schema["properties"].items():
            yield from sections(below, f"{at}.{key}".strip("."))


@pytest.mark.parametrize("name", presets())
def test_presets_pass_the_schema(check: Any, name: str) -> None:
    assert not refused(check, yaml.safe_load(presets()[name].read_text()))
    assert not refused(check, load(name).model_dump(mode="json", by_alias=True))


def test_no_key_is_required_and_unknown_keys_are_refused() -> None:
    found = dict(sections(overrides()))
    assert {"", "services.rollout", "services.controller.autoscaler.inference", "rpc.tls",
            "schedules.learning_rate", "game.observation"} <= found.keys()
    for path, schema in found.items():
        assert schema["additionalProperties"] is False and "required" not in schema, path


def test_every_key_has_its_description() -> None:
    found = dict(sections(overrides()))
    whole = load("laptop-1v1").model_dump(mode="json", by_alias=True)

    def walk(tree: dict[str, Any], at: str) -> None:
        schema = found[at]["properties"]
        replaced = {path.rpartition(".")[2] for path in replaced_keys() if path.rpartition(".")[0] == at}
        assert schema.keys() - {"preset"} - replaced == tree.keys() - {"preset"}, at
        for key, value in tree.items():
            path = f"{at}.{key}".strip(".")
            assert path in COMPUTED or schema[key]["description"], path
            if isinstance(value, dict) and path not in ("rewards.weights", "model.id_rows"):
                walk(value, path)

    walk(whole, "")
    assert found["rewards.weights"]["properties"].keys() == set(get_args(SignalName))
    assert found["model.id_rows"]["properties"].keys() == set(get_args(IdSpace))


def test_items_of_lists_are_complete(check: Any) -> None:
    ramp = {"start": 1, "length": 2, "from": 0.1, "to": 0.2}
    assert not refused(check, {"schedules": {"team_spirit": {"ramps": [ramp]}}})
    del ramp["to"]
    assert refused(check, {"schedules": {"team_spirit": {"ramps": [ramp]}}}) == ["schedules.team_spirit.ramps.0"]


@pytest.mark.parametrize(("tree", "path"), [
    ({"services": {"rollout": {"gamez": 1}}}, "services.rollout"),
    ({"services": {"rollout": {"games": 0}}}, "services.rollout.games"),
    ({"services": {"rollout": {"games": "many"}}}, "services.rollout.games"),
    ({"services": {"rollout": {"encoding": "gzip"}}}, "services.rollout.encoding"),
    ({"services": {"rollout": {"scripted_bots": ["scripted", "smart"]}}}, "services.rollout.scripted_bots.1"),
    ({"rewards": {"weights": {"wins": 1}}}, "rewards.weights"),
    ({"learning": None}, "learning"),
    ({"rpc": {"tls": {"cert": "x"}}}, "rpc.tls"),
])
def test_wrong_value_is_refused_at_its_path(check: Any, tree: Any, path: str) -> None:
    assert refused(check, tree) == [path]


@pytest.mark.parametrize("path", [*COMPUTED, *replaced_keys()])
def test_computed_and_replaced_keys_are_left_to_the_chart(check: Any, path: str) -> None:
    tree: Any = {"of": ["any", "kind"]}
    for key in reversed(path.split(".")):
        tree = {key: tree}
    assert not refused(check, tree)


TEXTS = ("0", "0.0", ".5", "0.5", "0.005", "0.015", "-0.5", "1.0", "1.5", "0.999", "4.9", "5.5", "9.5", "10.0",
         "10.5", "63.9", "64.0", "64.5", "123.25", "1e-4", "2.5e-05", "-1e-4", "1e3", "1e-0", "12e-1", "", "1.2.3",
         "many", "0x1", "-", ".", "e5")


@pytest.mark.parametrize("bounds", sorted({json.dumps({k: v for k, v in schema.items() if "imum" in k})
                                           for _, section in sections(overrides())
                                           for schema in section["properties"].values()
                                           if schema.get("type") == ["number", "string"]}))
def test_bounds_apply_to_fractions_as_text(bounds: str) -> None:
    number = json.loads(bounds)
    pattern = as_text(number)
    assert pattern
    alone = DRAFT7(number)
    for text in TEXTS:
        try:
            good = alone.is_valid(TypeAdapter(float).validate_python(text))
        except ValidationError:
            good = False
        taken = re.search(pattern, text) is not None
        assert good or not taken, text
        # helm passes whole numbers as numbers, so no pattern is needed for their text.
        if good and re.fullmatch(r"-?[0-9]*\.[0-9]+|[1-9](\.[0-9]+)?e-0*[1-9]", text) and text != "0.0":
            assert taken or number.get("minimum", 0) >= 1, text


def test_bounds_without_a_pattern_allow_numbers_only() -> None:
    assert as_text({"minimum": 0.5}) is None and as_text({"maximum": 0.5, "minimum": 0}) is None
    assert as_text({"minimum": -5, "maximum": 5}) is None


def test_rest_of_the_file_is_unchanged() -> None:
    text = (CHART / SCHEMA).read_text()
    bare = '{\n  "a": [1,2],\n  "overrides": {"seed": {}},\n  "z" : 0\n}\n'
    new = with_overrides(bare)
    assert new.startswith('{\n  "a": [1,2],\n  "overrides": {\n    "description"')
    assert new.endswith('\n  },\n  "z" : 0\n}\n')
    assert json.loads(new)["overrides"] == overrides() and with_overrides(new) == new
    for wrong in ("{}", text + text):
        with pytest.raises(ValueError, match="expected once"):
            with_overrides(wrong)
