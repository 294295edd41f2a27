"""The model names and refuses fields that it does not read."""

import dataclasses

import pytest

from dota.config import GameConfig
from dota.spaces import Array, Field, Layout
from five.agent.model.field_coverage import unread_fields
from five.agent.model.inputs import InputReader
from five.run.load import load, presets


@pytest.mark.parametrize("preset", sorted(presets()))
def test_every_field_of_the_presets_is_read(preset: str) -> None:
    assert unread_fields(Layout(load(preset).game)) == ()


def with_field(block: str, array: Array, count: int = 1) -> Layout:
    """Return a layout with one more field, ``block.new``."""
    layout = Layout(GameConfig())
    found = layout.blocks[block]
    new = Field("new", count, array, found.width(array))
    layout.blocks[block] = dataclasses.replace(found, fields=(*found.fields, new))
    return layout


@pytest.mark.parametrize(("block", "array"), [
    ("units", "shared_ids"), ("heroes", "shared_ids"), ("heroes", "private_ids"), ("items", "shared_ids"),
    ("global", "private"), ("allied_heroes", "private"), ("pickups", "private"), ("minimap", "shared_ids"),
])
def test_an_unread_field_is_refused_by_name(block: str, array: Array) -> None:
    with pytest.raises(ValueError, match=rf"does not read: {block}\.new; .*omit"):
        InputReader(with_field(block, array))


@pytest.mark.parametrize(("block", "array"), [
    ("units", "shared"), ("units", "private"), ("heroes", "private"), ("global", "shared"), ("items", "shared"),
])
def test_new_numbers_in_a_row_are_read(block: str, array: Array) -> None:
    assert unread_fields(with_field(block, array)) == ()


def test_an_id_with_an_unread_column_is_refused() -> None:
    layout = Layout(GameConfig())
    units = layout.blocks["units"]
    wide = tuple(f._replace(count=2) if f.name == "unit" else f for f in units.fields)
    layout.blocks["units"] = dataclasses.replace(units, fields=wide)
    assert unread_fields(layout) == ("units.unit",)
