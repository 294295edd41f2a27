"""Names that the project used to have of its own for what has one in the field are gone, from code and prose alike."""

import re

import pytest

from tests.repository import ROOT, sources

# What is retired, as a pattern, and what to write instead (docs/design.md, "Words").
RETIRED = {
    r"(?i:(?<![a-z.\"])(faces?)(?![a-z(\"]))|\bFace(?![a-z])": "endpoint, or API",
    r"(?i:(?<![a-z])doors?(?![a-z]))|Door(?![a-z])": "ingest, interceptor, address",
    r"(?i:\bsigns?\s+of\s+life\b)": "heartbeat",
    r"\bFloors\b|(?i:\bfloors\s+(above|below|of the (code|tree|libraries))\b)": "layers",
    r"(?i:\bway\s+of\s+the\s+data\b)": "data flow",
    r"keep_showing|controller[./]showing\b": "metrics updater",
    r"controller[./]opening\b": "run setup",
    r"\b_?Desk\b": "RunStateClient",
    r"_?while_away\b": "_retry_on_disconnect",
    r"(?i:\bfor\s+ever\b)": "permanently, without end",
    r"(?i:(?<![a-z])anew(?![a-z]))": "again",
    r"(?i:(?<![a-z])deeds?(?![a-z]))": "effect",
}
# The game's own words, hashes, and this list.
EXCEPT = ("libs/dota/data/", "LICENSE", "console/package-lock.json", "deploy/images/locks/",
          "tests/test_plain_words.py")


def found(text: str) -> list[str]:
    """The retired words in ``text``, each with its line and what to write instead."""
    return [f"{text.count(chr(10), 0, match.start()) + 1}: {match[0]!r}, write {instead}"
            for pattern, instead in RETIRED.items() for match in re.finditer(pattern, text)]


def test_no_file_has_a_retired_word() -> None:
    bad = []
    for path in sources():
        name = str(path.relative_to(ROOT))
        if not name.startswith(EXCEPT):
            # A name that a release had stands in the changelog, as code: that is what it is for.
            text = re.sub(r"`[^`]*`", "", path.read_text()) if name == "CHANGELOG.md" else path.read_text()
            bad += [f"{name}:{line}" for line in [*found(text), *(f"its name: {f}" for f in found(name))]]
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize("text", [
    "the REST face", "grpc_faces.py", "class Face:", "self._door", "at the door", "class Door(Base)", "DOOR_BYTES",
    "no sign of\nlife", "Signs of life", "## Floors", "The way of the data", "await keep_showing(service)",
    "services.controller.opening", "class _Desk:", "self._while_away(x)", "kept for ever", "begun anew", "any_deed_of",
])
def test_a_retired_word_is_found(text: str) -> None:
    assert len(found(text)) == 1


@pytest.mark.parametrize("text", [
    "interface", "surface", "indoor", "outdoors", "ground.face(hero, 0.0)", 'm.def("face", f)', "std::floor(x)",
    "serve_forever", "kForever", "BeforeVersion", "showing 10 of 50", "opening a file", "renewal", "indeed", "facet",
    "preface", "the floor of the buffer", "desktop", "a newer version",
])
def test_other_words_are_not(text: str) -> None:
    assert found(text) == []
