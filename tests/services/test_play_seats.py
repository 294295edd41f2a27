"""Control of heroes: the person while connected, the agent otherwise."""

import pytest

from five.services.play.seats import NoSeat, Seats


def seats(kept: float = 60.0) -> Seats:
    return Seats({hero: f"hero-{hero}" for hero in range(10)}, kept)


def test_agent_controls_a_reserved_hero_until_join() -> None:
    found = seats()
    found.reserve("ada", [0, 3], 0.0)
    assert found.held() == set() and found.of("ada") == [0, 3]
    assert found.enter("ada", (), 1.0) == [0, 3] and found.held() == {0, 3}


def test_sides_list_people_who_joined_and_the_filler() -> None:
    found = seats()
    found.reserve("ada", [0, 3], 0.0)
    found.reserve("bob", [5], 0.0)
    assert found.sides(["version-7", "scripted"], {"ada"}) == ["ada + version-7", "scripted"]
    found.reserve("ada", [1, 2, 4], 0.0)
    assert found.sides(["version-7", "scripted"], {"ada", "bob"}) == ["ada", "bob + scripted"]


def test_disconnect_gives_heroes_to_the_agent_until_reconnect() -> None:
    found = seats()
    found.enter("ada", [2], 0.0)
    found.hand("ada", 2, False)
    assert found.held() == set()
    found.hand("ada", None, True)
    found.leave("ada", 10.0)
    assert found.held() == set() and found.of("ada") == [2]
    with pytest.raises(NoSeat, match="taken"):
        found.enter("bob", [2], 69.0)
    assert found.enter("ada", (), 500.0) == [2] and found.held() == {2}


def test_expired_reservation_frees_the_seat() -> None:
    found = seats()
    found.enter("ada", [2], 0.0)
    with pytest.raises(NoSeat, match="taken"):
        found.enter("bob", [2], 10_000.0)  # she is connected
    found.leave("ada", 10.0)
    assert found.enter("bob", [2], 70.0) == [2]
    with pytest.raises(NoSeat, match="no_seat"):
        found.enter("ada", (), 71.0)


def test_heroes_of_both_sides_or_unknown_are_refused() -> None:
    found = seats()
    found.enter("ada", [0], 0.0)
    for wanted, word in (([5], "both_sides"), ([10], "no_hero")):
        with pytest.raises(NoSeat, match=word):
            found.enter("ada", wanted, 1.0)
    with pytest.raises(NoSeat, match="no_seat"):
        found.enter("bob", (), 1.0)
    with pytest.raises(NoSeat, match="not_yours"):
        found.hand("ada", 1, True)
    assert found.of("ada") == [0] and found.held() == {0}
