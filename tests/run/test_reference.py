"""The reference of the configuration: every key, and a unit for every number."""

import importlib

import pytest

from five.run.reference import OWN, REQUIRED, SOURCES, KeyReference, format_value, reference, type_of
from five.run.units import KEY_UNITS, UNITS, unit_of

KEYS = {key.path: key for section in reference() for key in section.keys}


def test_every_key_has_a_meaning_and_a_source() -> None:
    for key in KEYS.values():
        assert len(key.meaning) > 5 and key.meaning.endswith((".", ")")), key
        assert key.source or key.default == REQUIRED, key
        module, _, name = key.defined.rpartition(".")
        assert hasattr(importlib.import_module(module), name)


def test_exactly_the_numbers_have_units() -> None:
    for key in KEYS.values():
        assert bool(key.unit) is key.type.startswith(("integer", "number")), key


def test_number_without_a_unit_is_refused() -> None:
    with pytest.raises(ValueError, match="learning.something_new has no unit"):
        unit_of("learning.something_new")


def test_units_and_sources_name_existing_keys() -> None:
    paths = set(KEYS) | {path.rpartition(".")[0] for path in KEYS}
    assert set(KEY_UNITS) <= paths
    assert set(SOURCES) <= paths
    last = {path.rpartition(".")[2] for path, key in KEYS.items() if key.unit}
    unused = {end for end in UNITS if not any(p.endswith(end) if end.startswith("_") else p == end for p in last)}
    assert unused == set()


def test_key_of_the_reference() -> None:
    assert KEYS["learning.batch_samples"] == KeyReference(
        "learning.batch_samples", "integer, >= 1", "120", "samples", "Samples per gradient step and optimizer.",
        "Berner et al. 2019, table 2, Rerun", "five.agent.config.LearnerConfig", {})
    assert KEYS["schedules.learning_rate.ramps[].from"].default == REQUIRED
    assert KEYS["schedules.learning_rate.initial"].default == "5e-05"
    assert KEYS["rpc.tls"].type == "section or none" and "rpc.tls.key" in KEYS
    assert KEYS["game.runes"].source == OWN


def test_sections_of_one_class_have_their_own_meanings() -> None:
    meanings = {section.path: section.meaning for section in reference()}
    schedules = [text for path, text in meanings.items() if path.startswith("schedules.") and "ramps" not in path]
    assert len(set(schedules)) == len(schedules) > 5
    assert meanings["schedules.scripted_bot"].startswith("Which of services.rollout.scripted_bots")
    assert meanings["buffer"].startswith("Sample buffer")


def test_types_and_values_as_text() -> None:
    assert type_of(tuple[int, ...]) == "list of integer"
    assert type_of(dict[str, float]) == "mapping of text to number"
    assert [format_value(v) for v in (True, None, "", ["a", "b"], 2 / 3, {})] == [
        "true", "none", "''", "[a, b]", "0.666667", "{}"]
