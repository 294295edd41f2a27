"""Fixtures: a browser for the tests of a file, and a console with days of seeded history."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.console.browser import Watched, chromium
from tests.console.seeded import seeded
from tests.services.live_controller import LiveController


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def rest() -> Iterator[LiveController]:
    with seeded() as found:
        assert found.context.site.build, "make console"
        yield found


@pytest.fixture
def watched(browser: Browser, rest: LiveController) -> Iterator[Watched]:
    found = Watched(browser, rest.url)
    yield found
    found.close()
