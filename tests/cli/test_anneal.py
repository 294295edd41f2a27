"""Arguments of `five anneal start` and `five revert`."""

from typing import Any

import pytest

from five.cli.anneal import run, tree_of
from five.cli.commands import parser
from five.local.rest_client import ApiError


def test_typed_values_become_a_section_tree() -> None:
    assert tree_of(["game.patch=7.19", "kills_to_win=0", "randomisation.stats=0.1"], "game") == {
        "patch": "7.19", "kills_to_win": 0, "randomisation": {"stats": 0.1}}
    assert tree_of(["patch='7.19'"], "game") == {"patch": "7.19"}
    assert tree_of(["loss=0.1", "gates=[0.5, 1]"]) == {"loss": 0.1, "gates": [0.5, 1]}
    for text in ("patch", "=7.19", "patch=[", "patch.a.b=1"):
        with pytest.raises(ApiError, match="patch|KEY=VALUE"):
            tree_of(["patch=7.21d", text] if ".a" in text else [text], "game")


class RevertRecorder:
    """Controller that records requested reverts."""

    def __init__(self) -> None:
        self.reverts: list[dict[str, Any]] = []

    def get(self, path: str) -> Any:
        return {}

    def post(self, path: str, body: dict[str, Any]) -> Any:
        self.reverts.append(body)
        return {}


def test_revert_with_json_needs_the_confirmation() -> None:
    controller: Any = RevertRecorder()
    with pytest.raises(ApiError, match="nothing was changed: --yes confirms"):
        run(parser().parse_args(["revert", "--to", "5", "--json"]), controller)
    assert not controller.reverts
    assert run(parser().parse_args(["revert", "--to", "5", "--json", "--yes"]), controller) == 0
    assert [body["to"] for body in controller.reverts] == [5]
