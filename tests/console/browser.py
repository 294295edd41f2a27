"""A real Chromium at the console, and the watch it keeps: what a page logs or throws, and what it would load."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, expect, sync_playwright

from five.cli.console import link
from five.local.rest_client import Controller
from tests.services.live_controller import LiveController

AXE = Path(__file__).parents[2] / "console/node_modules/axe-core/axe.min.js"
SERIOUS = {"serious", "critical"}
# How many times longer than usual a page is waited for: on a machine that others keep busy.
PATIENCE = float(os.environ.get("FIVE_BROWSER_PATIENCE", "1"))
expect.set_options(timeout=5_000 * PATIENCE)


def executable() -> str:
    """Chromium of the system. Raises LookupError saying how to get one."""
    found = os.environ.get("FIVE_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not found:
        raise LookupError("the console's tests need Chromium; on Debian: apt-get install chromium (or FIVE_CHROMIUM)")
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser, without a window. As root it has no sandbox of its own: it looks at pages of this test alone."""
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=executable(), args=arguments)
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A page whose every error, and every request elsewhere, is written down."""

    def __init__(self, browser: Browser, url: str, **options: Any) -> None:
        self.url = url.rstrip("/")
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(15_000 * PATIENCE)
        self.wrong: list[str] = []
        self.page.on("pageerror", lambda error: self.wrong.append(f"thrown: {error}"))
        self.page.on("console", self._said)
        self.page.on("request", self._asked)

    def _said(self, message: Any) -> None:
        # A status of 4xx or 5xx is in the console besides; what is refused on purpose is no fault of the page.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.wrong.append(f"logged: {message.text}")

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:", "blob:")):
            self.wrong.append(f"loads from elsewhere: {urlsplit(request.url).netloc}")

    def log_in(self, rest: LiveController, token: str, role: str | None = None) -> Page:
        """By a link, as a person does."""
        self.page.goto(link(Controller(rest.url, token), role))
        self.page.get_by_role("navigation", name="Pages").wait_for()
        return self.page

    def visit(self, path: str) -> Page:
        """Goes to a page of the console and waits until it is there."""
        self.page.goto(self.url + path)
        self.page.locator("main h1").first.wait_for(state="attached")
        return self.page

    def faults(self) -> list[dict[str, Any]]:
        """What axe-core finds serious on the page as it is."""
        self.page.evaluate(AXE.read_text())
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            {"id": v["id"], "impact": v["impact"], "nodes": [n["html"][:160] for n in v["nodes"][:3]]}
            for v in found["violations"]
            if v["impact"] in SERIOUS
        ]

    def close(self) -> None:
        """Closes it. Raises AssertionError with all that was wrong."""
        self.context.close()
        assert not self.wrong, self.wrong
