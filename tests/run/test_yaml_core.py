"""Types of YAML's core schema, in files and overrides."""

import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from five import yaml_core
from five.run.load import ConfigError, load, rename, save


@pytest.mark.parametrize(("text", "value"), [
    ("010", 10), ("08", 8), ("0o17", 15), ("0x1F", 31), ("+3", 3), ("-0", 0), ("1e-5", 1e-5), ("1e3", 1000.0),
    ("-.5", -0.5), ("7.", 7.0), (".inf", math.inf), ("1:30", "1:30"), ("1_000", "1_000"), ("0b1", "0b1"),
    ("yes", "yes"), ("No", "No"), ("on", "on"), ("OFF", "OFF"), ("y", "y"), ("true", True), ("False", False),
    ("null", None), ("~", None), ("", None), ("2018-08-05", "2018-08-05"), ("1.2.3", "1.2.3"), (".", "."),
])
def test_scalar_has_the_core_schemas_type(text: str, value: Any) -> None:
    found = yaml_core.load(text)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(("text", "words"), [
    ("{a: 1, b: 2, a: 3}", "duplicate key 'a'"), ("9" * 5000, "not an integer"), ("0x" + "f" * 5000, "not an integer"),
    ("!!int x", "not an integer"), ("!!python/object:os.system x", "constructor"),
])
def test_unusable_document_is_a_yaml_error(text: str, words: str) -> None:
    with pytest.raises(yaml.YAMLError, match=words):
        yaml_core.load(text)


def test_merged_mapping_may_repeat_a_key() -> None:
    assert yaml_core.load("a: &a {x: 1, y: 2}\nb: {<<: *a, x: 3}") == {"a": {"x": 1, "y": 2}, "b": {"x": 3, "y": 2}}


def test_dumped_values_are_read_equal_by_both_versions() -> None:
    values = {"texts": ["1e3", "yes", "010", "0o17", "1:30", "2018-08-05", "", "~", "<<", "1_0", "a: b #c", "ä"],
              "numbers": [1e-5, 1e300, 0, -3, 2.5, math.inf], "others": [None, True, False]}
    text = yaml_core.dump(values)
    assert yaml_core.load(text) == values and yaml.safe_load(text) == values


def test_file_and_override_are_read_alike(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("preset: laptop-1v1\nseed: 010\nname: on\n", encoding="utf-8")
    found = load(path)
    assert (found.seed, found.name) == (10, "on")
    found = load("laptop-1v1", ["seed=010", "name=on", "schedules.learning_rate.initial=1e-4"])
    assert (found.seed, found.name, found.schedules.learning_rate.initial) == (10, "on", 1e-4)


def test_name_like_a_number_survives_saving(tmp_path: Path) -> None:
    config = rename(load("laptop-1v1"), "1e3")
    save(config, tmp_path / "run.yaml")
    assert load(tmp_path / "run.yaml") == config


def test_key_given_twice_in_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("preset: laptop-1v1\nlearning: {batch_samples: 64}\nseed: 1\nlearning: {ppo_clip: 0.1}\n",
                    encoding="utf-8")
    with pytest.raises(ConfigError, match="duplicate key 'learning'"):
        load(path)
    path.write_bytes(b"name: \xff\n")
    with pytest.raises(ConfigError, match="not valid YAML"):
        load(path)
