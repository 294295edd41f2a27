"""The console's pages in a real browser, on a run with days of history."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from five.services.controller.console.static_files import PAGES
from tests.console.browser import PATIENCE, Watched, until
from tests.console.seeded import seeded
from tests.services.live_controller import OPERATOR, RUN, VIEWER, LiveController

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
ADDRESSES = ("/", *(f"/{page}" for page in PAGES))


def test_a_link_logs_in_and_leaves_the_address(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    assert page.url == rest.url + "/"
    (cookie,) = watched.context.cookies()
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict" and cookie["name"] == "five-trial"
    assert "five-trial" not in page.evaluate("document.cookie")
    expect(page.get_by_text("ada, operator")).to_be_visible()
    page.reload()
    expect(page.get_by_text("ada, operator")).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Token")).to_be_visible()


def test_login_without_a_link_takes_a_token(watched: Watched, rest: LiveController) -> None:
    page = watched.page
    page.goto(rest.url + "/events")
    page.get_by_label("Token").fill("nobody's")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("not listed")
    page.get_by_label("Token").fill(VIEWER)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_text("vera, viewer")).to_be_visible()
    assert VIEWER not in page.content() + page.url + str(
        page.evaluate("JSON.stringify([localStorage, sessionStorage])")
    )


def expect_drawn_charts(page: Page, count: int) -> None:
    """Wait until at least ``count`` charts' canvases show more than grid and axes.

    Raises:
        playwright.sync_api.TimeoutError: Fewer show it within the page's default timeout.
    """
    page.wait_for_function("""(count) => [...document.querySelectorAll('.chart canvas')].filter((canvas) => {
        const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        const colours = new Set();
        for (let i = 0; i < data.length; i += 4)
            if (data[i + 3] > 200) colours.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]);
        return colours.size > 12;
    }).length >= count""", arg=count)


def test_the_run_is_drawn_with_its_marks(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    expect(page.locator(".facts")).to_contain_text("110,469,120")
    page.locator(".chart canvas").nth(12).wait_for()
    expect_drawn_charts(page, 13)
    lane = page.get_by_role("region", name="Time line")
    for words in ("wider", "optimizer resumed", "patch-7.21d", "revert"):
        expect(lane.get_by_role("button", name=re.compile(words)).first).to_be_attached()
    expect(lane).to_contain_text("versions 610 to 660, back to 609 by ada")
    expect(page.get_by_role("region", name="Services")).to_contain_text("rollout/1")


TEXTS_OF_CANVASES = """
    window.drawn = new Set();
    const fill = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
        drawn.add(String(text));
        fill.call(this, text, ...place);
    };"""


def test_time_axes_have_the_consoles_date_format(watched: Watched, rest: LiveController) -> None:
    watched.context.add_init_script(TEXTS_OF_CANVASES)
    page = watched.log_in(rest, OPERATOR)
    expect_drawn_charts(page, 12)
    days = set(page.evaluate("[...drawn]"))
    assert any(re.fullmatch(r"\d{1,2} [A-Z][a-z]{2}", text) for text in days), days
    page.get_by_role("button", name="6 h", exact=True).click()
    until(page, lambda: any(re.fullmatch(r"\d\d:\d\d", text) for text in page.evaluate("[...drawn]")))
    texts = page.evaluate("[...drawn]")
    assert not any(re.fullmatch(r"\d+/\d+.*|\d+(:\d+)?[ap]m", text) for text in texts), texts


def test_empty_chart_follows_the_theme(browser: Browser) -> None:
    with seeded() as rest:
        rest.state.redis.delete(f"five:{RUN}:series:ratings")
        watched = Watched(browser, rest.url, color_scheme="light")
        page = watched.log_in(rest, OPERATOR)
        expect(page.get_by_text("nothing yet").first).to_be_visible()
        page.get_by_role("button", name="Dark colours").click()
        page.wait_for_timeout(500 * PATIENCE)
        page.get_by_role("button", name="Light colours").click()
        expect_drawn_charts(page, 12)
        watched.close()  # nothing was thrown


def test_url_holds_range_and_position_of_all_charts(
    watched: Watched, rest: LiveController
) -> None:
    page = watched.log_in(rest, OPERATOR)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_selector(".chart canvas")
    page.get_by_role("button", name="1 d", exact=True).click()
    page.wait_for_url(re.compile(r"from=\d+&to=\d+"))
    until(page, lambda: all(any(f"curves/{kind}" in url and "from=" in url for url in asked)
                            for kind in ("versions", "games", "ratings")))
    page.locator(".facts").wait_for()  # what is above the charts moves them
    page.get_by_role("button", name=re.compile("wider")).first.wait_for()
    page.locator(".chart canvas").nth(12).wait_for()
    chart = page.locator(".u-over").first
    box = chart.bounding_box()
    assert box is not None
    before = page.url
    page.mouse.move(box["x"] + 40, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + 140, box["y"] + 40, steps=4)
    page.mouse.up()
    page.wait_for_url(lambda url: url != before)
    page.get_by_role("button", name=re.compile("wider")).click()
    page.wait_for_url(re.compile(r"at=\d+"))
    again = page.url
    page.goto(again)
    expect(page.locator(".timebar .moment")).to_be_attached()
    assert page.url == again


def reverted(rest: LiveController) -> tuple[float, float]:
    """Return the times of the reverted branch and of the run after it, from the marks of versions 250 and 661."""
    marks = {mark["kind"]: mark["at"] for mark in rest.ask("GET", "/v1/console/timeline").json() if mark["version"]}
    a_version = (marks["revert"] - marks["surgery"]) / 411
    return marks["revert"] - 48 * a_version, marks["revert"] - 4 * a_version


def strokes(page: Page, title: str) -> tuple[int, int]:
    """Pixels of a chart's first line: those that cover what is below, and those that let it through."""
    found = page.evaluate("""(title) => {
        const heading = [...document.querySelectorAll('.chart h3')].find((h) => h.textContent === title);
        const canvas = heading?.closest('.chart').querySelector('canvas');
        if (!canvas?.width) return [0, 0];
        const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        const line = getComputedStyle(document.documentElement).getPropertyValue('--line-0').trim();
        const wanted = [1, 3, 5].map((i) => parseInt(line.slice(i, i + 2), 16));
        let whole = 0, faint = 0;
        for (let i = 0; i < data.length; i += 4) {
            if (wanted.some((c, k) => Math.abs(c - data[i + k]) > 4)) continue;
            if (data[i + 3] > 220) whole++;
            else if (data[i + 3] > 90 && data[i + 3] < 140) faint++;
        }
        return [whole, faint];
    }""", title)
    return int(found[0]), int(found[1])


CURVES = "**/v1/console/curves/**"
# The page receives the branches when a test calls deliverBranches.
HOLD_BRANCHES = """
    const listen = EventSource.prototype.addEventListener;
    EventSource.prototype.addEventListener = function (kind, take) {
        const hold = (event) => { window.deliverBranches = () => take(event); };
        listen.call(this, kind, kind === "branches" ? hold : take);
    };"""


def is_ghost(whole: int, faint: int) -> bool:
    """Return whether strokes are of a line that is dashed and faded."""
    return faint > 50 and whole < faint / 10


def is_whole(whole: int, faint: int) -> bool:
    """Return whether strokes are of a line that is neither; its edges are faint as well."""
    return whole > 300 and faint < whole / 2


@pytest.mark.parametrize("late", [False, True])
def test_a_branch_that_was_left_is_drawn_as_a_ghost(watched: Watched, rest: LiveController, late: bool) -> None:
    page = watched.log_in(rest, OPERATOR)
    first, last = reverted(rest)
    if late:
        watched.context.add_init_script(HOLD_BRANCHES)
    for earlier, is_drawn in ((0, is_ghost), (40_000, is_whole)):
        watched.visit(f"/?from={first - earlier:.0f}&to={last - earlier:.0f}")
        if late:
            until(page, lambda: sum(strokes(page, "Policy")) > 50)
            page.route(CURVES, lambda route: route.abort())  # no later answer draws the charts again
            page.wait_for_function("() => window.deliverBranches !== undefined")
            page.evaluate("deliverBranches()")
        expect(page.get_by_text("Dashed lines are of branches that were left")).to_be_visible()
        until(page, lambda: is_drawn(*strokes(page, "Policy")))  # noqa: B023
        page.unroute(CURVES)


def test_hovering_one_chart_reads_all_of_them_at_that_moment(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    page.locator(".chart canvas").nth(12).wait_for()
    values = page.locator(".chart .legend").all_inner_texts
    # This run has no building events.
    until(page, lambda: len(values()) == 16 and sum(text.count("–") for text in values()) <= 1)
    page.locator(".facts").wait_for()  # what is above the charts moves them
    page.get_by_role("button", name=re.compile("wider")).first.wait_for()
    newest = values()
    box = page.locator(".chart", has=page.get_by_role("heading", name="Staleness")).locator(".u-over").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 40)
    titles = page.locator(".chart h3").all_inner_texts()

    def moved() -> set[str]:
        return {title for title, a, b in zip(titles, newest, values(), strict=True) if a != b}

    until(page, lambda: moved() >= {"TrueSkill", "Staleness", "Hero-steps", "Schedules", "Last hits, denies"})
    page.mouse.move(5, 5)
    until(page, lambda: values() == newest)


def test_hostile_text_is_shown_as_text(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    watched.visit("/events")
    expect(page.get_by_text("<img src=x onerror=").first).to_be_visible()
    assert page.locator("main img, main script").count() == 0 and "hacked" not in page.title()
    page.get_by_label("Who").select_option("ada")
    page.get_by_label("Words").fill("120500")
    expect(page.get_by_role("region", name="Events").locator("tbody tr")).to_have_count(1)
    assert "who=ada" in page.url and "words=120500" in page.url


def test_a_version_and_an_event_arrive_by_themselves(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    watched.visit("/events")
    rest.state.events.append("grace", "test.noted", {"n": 41})
    expect(page.get_by_role("cell", name="test.noted")).to_be_visible()


def test_the_league_shows_how_often_each_version_is_drawn(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    watched.visit("/league")
    cells = page.get_by_role("region", name="Opponent pool").locator("tbody tr td:nth-child(2)")
    expect(cells).to_have_count(45)
    assert sum(float(text.removesuffix(" %")) for text in cells.all_inner_texts()) == pytest.approx(100, abs=2.5)
    for text in cells.all_inner_texts():
        assert re.fullmatch(r"\d+\.\d %", text), text  # small shares as well


def test_as_viewer_every_act_is_refused(browser: Browser, rest: LiveController) -> None:
    watched = Watched(browser, rest.url)
    page = watched.log_in(rest, VIEWER)
    watched.visit("/steering")
    for name in ("Pause", "Resume", "Stop", "Change schedule", "Check plan", "Apply plan", "Revert run"):
        button = page.get_by_role("button", name=name, exact=True)
        expect(button).to_have_attribute("aria-disabled", "true")
        button.click(force=True)
        expect(page.get_by_role("dialog")).to_be_hidden()
    # Past the buttons, the controller refuses as well.
    status = page.evaluate("""async () => (await fetch('/v1/pause', {method: 'POST',
        headers: {'X-Five-Console': 'x'}})).status""")
    assert status == 403
    watched.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Browser, rest: LiveController, scheme: str) -> None:
    watched = Watched(browser, rest.url, color_scheme=scheme)
    page = watched.log_in(rest, OPERATOR)
    found = {}
    for address in ADDRESSES:
        watched.visit(address)
        page.wait_for_timeout(1200 * PATIENCE)
        found[address] = watched.faults()
    page.goto(rest.url + "/steering")
    page.get_by_role("button", name="Pause", exact=True).click()
    page.get_by_text("The run would be").wait_for()
    found["dialog"] = watched.faults()
    watched.close()
    assert not any(found.values()), found


def test_the_keyboard_reaches_everything(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    for address in ADDRESSES:
        watched.visit(address)
        page.wait_for_timeout(1000 * PATIENCE)
        reachable = page.evaluate("""() => { window.reached = new Set();
            document.addEventListener('focusin', (e) => reached.add(e.target));
            const wanted = [...document.querySelectorAll(
                'button, a[href], input, select, textarea, summary, [tabindex="0"]')];
            return wanted.filter((e) => e.offsetParent !== null && !e.disabled).length; }""")
        missed: list[str] = []
        for _ in range(3):  # again for what appeared meanwhile
            for _ in range(int(reachable) + 25):
                page.keyboard.press("Tab")
            missed = page.evaluate("""() => [...document.querySelectorAll(
                'button, a[href], input, select, textarea, summary')]
                .filter((e) => e.offsetParent !== null && !e.disabled && !reached.has(e))
                .map((e) => e.outerHTML.slice(0, 120))""")
            if not missed:
                break
        assert not missed, (address, missed)
    watched.visit("/steering")
    pause = page.get_by_role("button", name="Pause", exact=True)
    pause.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


def simulated(colour: tuple[int, int, int], kind: str) -> tuple[float, float, float]:
    """A colour as somebody without one kind of cone sees it (Viénot, Brettel, Mollon 1999), linear RGB."""
    rgb = [((c / 255 + 0.055) / 1.055) ** 2.4 if c > 10 else c / 255 / 12.92 for c in colour]
    matrix = {
        "protan": ((0.11238, 0.88762, 0), (0.11238, 0.88762, 0), (0.00401, -0.00401, 1)),
        "deutan": ((0.29275, 0.70725, 0), (0.29275, 0.70725, 0), (-0.02234, 0.02234, 1)),
    }.get(kind, ((1, 0, 0), (0, 1, 0), (0, 0, 1)))
    a, b, c = (sum(m * v for m, v in zip(row, rgb, strict=True)) for row in matrix)
    return a, b, c


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_team_colours_differ_for_colour_blind_people(browser: Browser, rest: LiveController, scheme: str) -> None:
    watched = Watched(browser, rest.url, color_scheme=scheme)
    page = watched.log_in(rest, OPERATOR)
    values = page.evaluate("""() => ['--radiant', '--dire'].map((name) =>
        getComputedStyle(document.documentElement).getPropertyValue(name).trim())""")
    watched.close()
    teams = [tuple(int(v[i : i + 2], 16) for i in (1, 3, 5)) for v in values]
    for kind in ("all", "protan", "deutan"):
        radiant, dire = (simulated(team, kind) for team in teams)
        assert sum((a - b) ** 2 for a, b in zip(radiant, dire, strict=True)) ** 0.5 > 0.25, kind


def test_a_new_build_is_taken_by_a_page_that_is_open(browser: Browser) -> None:
    with seeded() as rest:
        watched = Watched(browser, rest.url)
        page = watched.log_in(rest, OPERATOR)
        page.wait_for_timeout(500 * PATIENCE)
        with page.expect_navigation():
            rest.context.site.build = "another"
        expect(page.get_by_text("A new console is there: reload")).to_be_visible()  # and not again by itself
        watched.close()
