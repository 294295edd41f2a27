"""The events page during a run."""

import json

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.console.browser import Watched
from tests.console.seeded import seeded
from tests.services.live_controller import OPERATOR, LiveController

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def many(rest: LiveController, first: int, last: int) -> None:
    """Store events numbered from first to last - 1 at once."""
    pipeline = rest.state.redis.pipeline(transaction=False)
    for n in range(first, last):
        pipeline.xadd(rest.state.keys.events, {"who": "grace", "what": "test.many", "details": json.dumps({"n": n})})
    pipeline.execute()


def test_events_before_the_stream_connects_are_shown(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)

    def late(route: Route) -> None:
        expect(page.get_by_role("heading", name="Events")).to_be_visible()
        rest.state.events.append("grace", "test.between", {"n": 42})
        route.continue_()

    page.route("**/v1/console/stream", late)
    watched.visit("/events")
    expect(page.get_by_role("cell", name="test.between")).to_be_visible()


def test_open_events_page_has_no_gaps(browser: Browser) -> None:
    with seeded() as rest:
        watched = Watched(browser, rest.url)
        page = watched.log_in(rest, OPERATOR)
        watched.visit("/events")
        table = page.get_by_role("region", name="Events").locator("tbody tr")
        expect(page.get_by_role("cell", name="run.created")).to_be_visible()
        before = table.count()
        for first, last in ((0, 700), (700, 1400)):  # more than one look of the stream tells
            many(rest, first, last)
            expect(table).to_have_count(before + last)
        many(rest, 1400, 2300)
        bounded = page.get_by_role("status").filter(has_text="and older ones")
        expect(bounded).to_have_text("2000 of 2000, and older ones")
        numbers = "(rows) => rows.map((row) => Number(/^n (\\d+)$/.exec(row.cells[3].textContent)?.[1] ?? -1))"
        assert table.evaluate_all(numbers) == list(range(2299, 299, -1))
        while page.get_by_role("button", name="Older").count():
            had = table.count()
            page.get_by_role("button", name="Older").click()
            expect(table).not_to_have_count(had)
        assert [n for n in table.evaluate_all(numbers) if n >= 0] == list(range(2299, -1, -1))
        expect(table).to_have_count(before + 2300)
        many(rest, 2300, 3800)  # more than one answer holds: it begins again at the newest, and goes back from there
        expect(page.get_by_role("cell", name="n 3799", exact=True)).to_be_attached()
        newest = table.evaluate_all(numbers)
        assert newest == list(range(3799, 3799 - len(newest), -1))
        watched.close()
