"""The model refuses a layout with a field that it would silently leave out, and names it."""

import dataclasses

import pytest

from dota.config import GameConfig
from dota.spaces import Array, Field, Layout
from five.agent.model.field_coverage import unread_fields
from five.agent.model.inputs import InputReader
from five.run.load import load, presets


@pytest.mark.parametrize("preset", sorted(presets()))
def test_the_presets_layouts_are_read_whole(preset: str) -> None:
    assert unread_fields(Layout(load(preset).game)) == ()


def with_field(block: str, array: Array, count: int = 1) -> Layout:
    """A layout with one more field, ``block.new``."""
    layout = Layout(GameConfig())
    found = layout.blocks[block]
    new = Field("new", count, array, found.width(array))
    layout.blocks[block] = dataclasses.replace(found, fields=(*found.fields, new))
    return layout


@pytest.mark.parametrize(("block", "array"), [
    ("units", "shared_ids"), ("heroes", "shared_ids"), ("heroes", "private_ids"), ("items", "shared_ids"),
    ("global", "private"), ("allied_heroes", "private"), ("pickups", "private"), ("minimap", "shared_ids"),
])
def test_a_field_that_nothing_reads_is_refused_by_name(block: str, array: Array) -> None:
    with pytest.raises(ValueError, match=rf"does not read: {block}\.new; .*omit"):
        InputReader(with_field(block, array))


@pytest.mark.parametrize(("block", "array"), [
    ("units", "shared"), ("units", "private"), ("heroes", "private"), ("global", "shared"), ("items", "shared"),
])
def test_numbers_in_a_row_that_is_read_whole_are_read(block: str, array: Array) -> None:
    assert unread_fields(with_field(block, array)) == ()


def test_an_id_of_two_columns_where_one_is_read_is_refused() -> None:
    layout = Layout(GameConfig())
    units = layout.blocks["units"]
    wide = tuple(f._replace(count=2) if f.name == "unit" else f for f in units.fields)
    layout.blocks["units"] = dataclasses.replace(units, fields=wide)
    assert unread_fields(layout) == ("units.unit",)
