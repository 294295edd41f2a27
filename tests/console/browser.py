"""Chromium on the console's pages, which records everything that a page logs, throws or requests."""

import inspect
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, expect, sync_playwright

from five.cli.console import link
from five.local.rest_client import ControllerClient
from tests.services.live_controller import LiveController

AXE = Path(__file__).parents[2] / "console/node_modules/axe-core/axe.min.js"
SERIOUS = {"serious", "critical"}
# Factor on the time-outs of pages, which are far above what a page takes on a busy machine.
PATIENCE = float(os.environ.get("FIVE_BROWSER_PATIENCE", "1"))
WAIT_SECONDS = 60.0 * PATIENCE
expect.set_options(timeout=1000 * WAIT_SECONDS)


def executable() -> str:
    """Return the system's Chromium. Raises LookupError with instructions to install it."""
    found = os.environ.get("FIVE_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not found:
        raise LookupError("the console's tests need Chromium; on Debian: apt-get install chromium (or FIVE_CHROMIUM)")
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser headless. As root it has no sandbox: it opens pages of this test only."""
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=executable(), args=arguments)
        try:
            yield browser
        finally:
            browser.close()


def until(page: Page, condition: Callable[[], Any], seconds: float = WAIT_SECONDS) -> Any:
    """Return the first true value of ``condition`` while the browser goes on.

    Fail after ``seconds`` with the condition's source and its last value.
    """
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"not within {seconds:g} s: {inspect.getsource(condition).strip()} is {value!r}"
        page.wait_for_timeout(30)
    return value


class Watched:
    """Page that records every error and every request to another origin."""

    def __init__(self, browser: Browser, url: str, **options: Any) -> None:
        self.url = url.rstrip("/")
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(1000 * WAIT_SECONDS)
        self.wrong: list[str] = []
        self.page.on("pageerror", lambda error: self.wrong.append(f"thrown: {error}"))
        self.page.on("console", self._said)
        self.page.on("request", self._asked)

    def _said(self, message: Any) -> None:
        # The browser also logs a status of 4xx or 5xx. A refusal that a test expects is not a fault of the page.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.wrong.append(f"logged: {message.text}")

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:", "blob:")):
            self.wrong.append(f"loads from elsewhere: {urlsplit(request.url).netloc}")

    def log_in(self, rest: LiveController, token: str, role: str | None = None) -> Page:
        """Log in with a link."""
        self.page.goto(link(ControllerClient(rest.url, token), role))
        self.page.get_by_role("navigation", name="Pages").wait_for()
        return self.page

    def visit(self, path: str) -> Page:
        """Open a page of the console and wait until it is shown."""
        self.page.goto(self.url + path)
        self.page.locator("main h1").first.wait_for(state="attached")
        return self.page

    def faults(self) -> list[dict[str, Any]]:
        """Return axe-core's serious findings on the current page."""
        self.page.evaluate(AXE.read_text())
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            {"id": v["id"], "impact": v["impact"], "nodes": [n["html"][:160] for n in v["nodes"][:3]]}
            for v in found["violations"]
            if v["impact"] in SERIOUS
        ]

    def close(self) -> None:
        """Close the page. Raises AssertionError with all recorded errors."""
        self.context.close()
        assert not self.wrong, self.wrong
