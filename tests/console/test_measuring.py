"""Measurements of the page on real pages return a number for every row."""

import pytest
from playwright.sync_api import Browser

from tests.console.measuring import played_rows, watched_rows
from tests.services.live_controller import LiveController

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(300)]


def test_every_row_is_a_figure(browser: Browser, rest: LiveController) -> None:
    rows = [*watched_rows(browser, rest, 1.0), *played_rows(browser, rest, 2.0)]
    assert [r.name for r in rows] == [
        "page.watched.all", "page.watched.all.thread", "page.watched.fog", "page.watched.fog.thread", "page.played",
        "page.played.thread", "page.played.bytes", "page.played.answered.p50", "page.played.answered.p99",
        "page.played.shown.p50", "page.played.shown.p99"]
    assert all(r.value > 0 for r in rows), rows
    assert rows[6].value > 500  # of a game at 30 frames a second
