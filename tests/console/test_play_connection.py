"""The connection of the play page: lost, silent, taken by another window, ended, and a spectator's."""

import pytest
from playwright.sync_api import Browser, expect

from tests.console.browser import Watched, until
from tests.console.played import GAME, PlayedHere
from tests.console.test_play import FIELD, begin, data, played, watched
from tests.services.live_controller import VIEWER, LiveController

__all__ = ["played", "watched"]
pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
# Counts the page's sockets. While a test sets lost, they get no answer.
LOSE_HANDSHAKES = """
    window.opened = 0;
    window.lost = false;
    window.WebSocket = new Proxy(WebSocket, { construct(original, values) {
        opened += 1;
        return lost ? { readyState: 0, close: () => undefined } : new original(...values);
    } });"""


def test_a_lost_connection_comes_back_with_the_seat(watched: Watched, rest: LiveController, played: PlayedHere) -> None:
    page = begin(watched, rest)
    played.break_off = True
    expect(page.get_by_role("alert")).to_contain_text("Connection lost")
    played.break_off = False
    expect(page.get_by_role("alert")).to_be_hidden()
    assert played.connections >= 2
    page.keyboard.press("s")
    until(page, lambda: played.orders("stop"))
    assert played.orders("stop")[-1]["n"] == 1  # numbers begin again with a connection
    until(page, lambda: data(page, "acks") == "1")


def test_a_silent_connection_is_replaced(watched: Watched, rest: LiveController, played: PlayedHere) -> None:
    page = begin(watched, rest)
    played.silent = True
    expect(page.get_by_role("alert")).to_contain_text("Connection lost")
    played.silent = False
    until(page, lambda: played.connections >= 2)
    expect(page.get_by_role("alert")).to_be_hidden()


def test_an_unanswered_handshake_is_repeated(watched: Watched, rest: LiveController, played: PlayedHere) -> None:
    watched.context.add_init_script(LOSE_HANDSHAKES)
    page = begin(watched, rest)
    page.evaluate("lost = true")
    played.break_off = True
    expect(page.get_by_role("alert")).to_contain_text("Connection lost")
    played.break_off = False
    page.wait_for_function("() => opened >= 3")  # the game's first connection, and two without an answer
    page.evaluate("lost = false")
    expect(page.get_by_role("alert")).to_be_hidden()


def test_a_game_open_in_two_windows_is_played_in_one(
        watched: Watched, rest: LiveController, played: PlayedHere) -> None:
    page = begin(watched, rest)
    played.taken_elsewhere = True
    expect(page.get_by_role("alert")).to_contain_text("in another window")
    page.wait_for_timeout(1000)
    assert played.connections == 1  # the windows do not take it from each other without end
    page.get_by_role("button", name="Play here").click()
    until(page, lambda: played.connections == 2)
    expect(page.get_by_role("alert")).to_be_hidden()


def test_the_result_is_shown_and_the_page_stays(watched: Watched, rest: LiveController, played: PlayedHere) -> None:
    page = begin(watched, rest)
    played.game_over = True
    expect(page.get_by_role("heading", name="Radiant won.")).to_be_visible()
    expect(page.get_by_text("Your rating among people: 26.0 ± 7.5")).to_be_visible()  # as in the list of ratings
    page.get_by_role("button", name="Another game").click()
    expect(page.get_by_role("heading", name="Play", exact=True)).to_be_visible()
    assert played.connections == 1


def test_the_next_game_does_not_begin_with_an_aimed_order(
        watched: Watched, rest: LiveController, played: PlayedHere) -> None:
    page = begin(watched, rest)
    page.keyboard.press("a")
    expect(page.locator(".field")).to_have_class("field aiming")
    played.game_over = True
    expect(page.get_by_role("heading", name="Radiant won.")).to_be_visible()
    played.game_over = False
    page.get_by_role("button", name="Another game").click()
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_function(f"() => Number(document.querySelector('{FIELD}')?.dataset.frames) > 5")
    expect(page.locator(".field")).to_have_class("field")


def test_a_viewer_watches_a_game_by_its_players_link(
        browser: Browser, rest: LiveController, played: PlayedHere) -> None:
    watched = Watched(browser, rest.url)
    page = watched.log_in(rest, VIEWER)
    with page.expect_websocket() as opened:
        page.goto(f"{rest.url}/play/{GAME}")
    assert opened.value.url.endswith("/socket?spectate=1")
    page.wait_for_function(f"() => Number(document.querySelector('{FIELD}')?.dataset.frames) > 5")
    page.locator("[data-field]").focus()
    page.keyboard.press("a")
    page.wait_for_timeout(300)
    expect(page.locator(".field")).to_have_class("field")  # nothing is aimed, which would hide the pointer
    played.break_off = True
    expect(page.get_by_role("alert")).to_have_text("Connection lost. Trying again…")
    played.break_off = False
    watched.close()
