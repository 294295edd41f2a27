"""Arguments of `five anneal start`."""

import pytest

from five.cli.anneal import tree_of
from five.local.rest_client import ApiError


def test_typed_values_become_a_section_tree() -> None:
    assert tree_of(["game.patch=7.19", "kills_to_win=0", "randomisation.stats=0.1"], "game") == {
        "patch": "7.19", "kills_to_win": 0, "randomisation": {"stats": 0.1}}
    assert tree_of(["patch='7.19'"], "game") == {"patch": "7.19"}
    assert tree_of(["loss=0.1", "gates=[0.5, 1]"]) == {"loss": 0.1, "gates": [0.5, 1]}
    for text in ("patch", "=7.19", "patch=[", "patch.a.b=1"):
        with pytest.raises(ApiError, match="patch|KEY=VALUE"):
            tree_of(["patch=7.21d", text] if ".a" in text else [text], "game")
