"""Stored rows of rated players: names, counts, order and damage."""

from dataclasses import asdict
from typing import Any

import pytest

from five.agent.ratings import Skill
from five.agent.standings import Standing, list_games, parse_standings, player_name, player_version


def standing(player: str = "version-3", mu: float = 5.0, **changes: Any) -> Standing:
    return Standing(player, mu, 1.5, 2, 0.1, **changes)


def rows(*standings: Standing, stored_format: Any = 2) -> dict[str, Any]:
    return {"format": stored_format, "open": None} | {f"rated:{s.player}": asdict(s) for s in standings}


@pytest.mark.parametrize(("player", "version"), [
    ("version-0", 0), ("version-12", 12), ("12", None), ("version-", None), ("version-x", None), ("version--1", None),
    ("scripted-hard", None), ("random", None)])
def test_version_of_a_player_name(player: str, version: int | None) -> None:
    assert player_version(player) == version
    assert version is None or player_name(version) == player


def test_games_are_listed_and_counted_by_result() -> None:
    found = standing(results={"random": [2, 1, 0], "scripted": [0, 0, 2]})
    assert found.games == 5 and found.skill == Skill(5.0, 1.5)
    assert list(list_games(found)) == [
        ("version-3", "random", 1.0), ("version-3", "random", 1.0), ("version-3", "random", 0.5),
        ("version-3", "scripted", 0.0), ("version-3", "scripted", 0.0)]
    assert standing().games == 0 and list(list_games(standing())) == []


def test_standings_are_read_strongest_first_and_equal_ones_by_name() -> None:
    stored = rows(standing("b", 1.0), standing("c", 9.0, reference=True, aborted=2, scores={"a": [0.5, 0.2, 0.8]}),
                  standing("a", 1.0))
    assert [s.player for s in parse_standings(stored)] == ["c", "a", "b"]
    assert parse_standings(stored)[0] == standing("c", 9.0, reference=True, aborted=2, scores={"a": [0.5, 0.2, 0.8]})


@pytest.mark.parametrize("stored_format", [1, 3, None, "2"])
def test_rows_of_another_format_give_no_standings(stored_format: Any) -> None:
    assert parse_standings(rows(standing(), stored_format=stored_format)) == []
    assert parse_standings({}) == []


@pytest.mark.parametrize("damage", [
    {"mu": float("nan")}, {"sigma": float("inf")}, {"draw_probability": float("nan")}, {"mu": "5"}, {"player": 3},
    {"scores": {"a": [0.5, float("nan"), 1.0]}}, {"results": {"a": [1, 2]}}, {"results": {"a": [1, 2, 3, 4]}},
    {"results": {"a": [1, -1, 0]}}, {"results": {"a": ["x", 0, 0]}}, {"results": {"a": None}}, {"unknown": 1}])
def test_damaged_row_is_named(damage: dict[str, Any]) -> None:
    stored = rows(standing("a", 1.0))
    stored["rated:a"] |= damage
    with pytest.raises(ValueError, match="the rating 'rated:a' is damaged"):
        parse_standings(stored)


def test_damaged_row_can_be_left_out() -> None:
    stored = rows(standing("a", 1.0), standing("b", 2.0))
    stored["rated:a"]["mu"] = "5"
    errors: list[ValueError] = []
    assert [found.player for found in parse_standings(stored, errors.append)] == ["b"]
    assert "the rating 'rated:a' is damaged" in str(errors[0]) and len(errors) == 1


def test_row_without_a_value_is_damaged() -> None:
    stored = rows(standing("a", 1.0))
    del stored["rated:a"]["mu"]
    with pytest.raises(ValueError, match="damaged"):
        parse_standings(stored)
    with pytest.raises(ValueError, match="damaged"):
        parse_standings({"format": 2, "rated:a": None})


def test_results_without_games_are_valid() -> None:
    assert parse_standings(rows(standing("a", 1.0, results={"b": [0, 0, 0]})))[0].games == 0
