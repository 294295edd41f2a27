"""Limits of a plan's YAML, and the line that an error names."""

import pytest

from five.agent.surgery.strict_yaml import parse_yaml


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


def test_text_of_64_kib_is_the_longest() -> None:
    longest = "a: " + "x" * (65_536 - 3)
    assert parse_yaml(longest) == {"a": longest[3:]}
    for longer in (longest + "x", longest.encode() + b"x", "a: " + "ä" * 32_767):
        with pytest.raises(ValueError, match=r"at most 65536 are allowed"):
            parse_yaml(longer)


def test_sixteen_levels_are_the_deepest() -> None:
    assert parse_yaml(nested(16)) is not None
    assert len(parse_yaml("[" + ", ".join([nested(15)] * 20) + "]")) == 20, "siblings do not add up"
    for deeper in (nested(17), f"[{', '.join([nested(3)] * 20)}, {nested(16)}]"):
        with pytest.raises(ValueError, match="line 1: nested deeper than 16 levels"):
            parse_yaml(deeper)


@pytest.mark.parametrize(("value", "words"), [
    ("*x", r"aliases \(\*name\)"), ("&x 1", r"anchors \(&name\)"), ("!x 1", r"tags \(!name\)"),
    ("!!str 1", r"tags \(!name\)"), (nested(16), "nested deeper"), ("{1: a}", "keys must be strings"),
    ("{null: a}", "keys must be strings"), ("{1.5: a}", "keys must be strings"), ("{true: a}", "keys must be strings"),
    ("{[a]: b}", "keys must be strings"), ("]", "invalid YAML"),
])
def test_forbidden_value_is_named_with_its_line(value: str, words: str) -> None:
    with pytest.raises(ValueError, match=f"^line 3: {words}"):
        parse_yaml(f"a: 1\nb: 2\nc: {value}\nd: 4\n")


def test_duplicate_keys_are_refused() -> None:
    with pytest.raises(ValueError, match="line 2: "):
        parse_yaml("a: 1\na: 2\n")


def test_text_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(ValueError, match="not UTF-8 text"):
        parse_yaml(b"a: \xff")
