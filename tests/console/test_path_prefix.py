"""The console in a real browser, below a path of a reverse proxy."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from five.services.controller.console.static_files import BUILT, ConsoleSite
from tests.console.browser import Watched
from tests.console.seeded import seeded
from tests.services.live_controller import OPERATOR, LiveController
from tests.services.reverse_proxy import Proxy

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
PREFIX = "/five"


@pytest.fixture(scope="module")
def prefixed() -> Iterator[LiveController]:
    with seeded(ConsoleSite(BUILT, PREFIX), path_prefix=PREFIX) as found:
        assert found.context.site.build, "make console"
        yield found


@pytest.mark.parametrize("strips", [True, False], ids=["prefix removed", "prefix kept"])
def test_pages_links_and_streams_work_below_a_path(browser: Browser, prefixed: LiveController, strips: bool) -> None:
    proxy = Proxy(prefixed.port, PREFIX, strips)
    watched = Watched(browser, proxy.url)
    page = watched.page
    page.goto(f"{proxy.url}/events")
    page.get_by_label("Token").fill(OPERATOR)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_text("ada, operator")).to_be_visible()
    for name in ("League", "Games", "Steering", "Run"):
        page.get_by_role("navigation", name="Pages").get_by_role("link", name=name, exact=True).click()
        page.locator("main h1").first.wait_for(state="attached")
        assert page.url.startswith(f"{proxy.url}/")
    # The stream of the overview, and figures over REST.
    expect(page.locator(".facts")).to_contain_text("110,469,120")
    page.reload()
    expect(page.locator(".facts")).to_contain_text("110,469,120")
    page.goto(f"{proxy.url}/docs")
    expect(page.get_by_text("/v1/status").first).to_be_visible()
    watched.close()  # fails for a request to a path without the prefix
    proxy.close()
