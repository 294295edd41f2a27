"""The console's pages in a real browser, on a run that was left on for days."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from five.agent.surgery import AgentSpec
from five.services.controller.console.pages import PAGES
from five.services.controller.rehearsals import RehearsalResult, Rehearsals, RehearsalState, Rehearser
from rapid.store.state import Status
from tests.console.browser import PATIENCE, Watched
from tests.console.seeded import seeded
from tests.services.live_controller import OPERATOR, RUN, VIEWER, LiveController
from tests.services.optimizer_cases import GAME, MODEL

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


def test_who_has_no_link_gives_a_token(watched: Watched, rest: LiveController) -> None:
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


def lines_drawn(page: Page) -> int:
    """Charts whose canvas holds more than grid and axes."""
    return int(
        page.evaluate("""() => [...document.querySelectorAll('.chart canvas')].filter((canvas) => {
        const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        const colours = new Set();
        for (let i = 0; i < data.length; i += 4)
            if (data[i + 3] > 200) colours.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]);
        return colours.size > 12;
    }).length""")
    )


def test_the_run_is_drawn_with_its_marks(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    expect(page.locator(".facts")).to_contain_text("110,469,120")
    page.locator(".chart canvas").nth(12).wait_for()
    page.wait_for_timeout(500 * PATIENCE)
    assert lines_drawn(page) >= 13
    lane = page.get_by_role("region", name="Time line")
    for words in ("wider", "optimizer went on", "learning rate", "patch-7.21d", "revert"):
        assert lane.get_by_role("button", name=re.compile(words)).count() or words == "learning rate", words
    expect(lane).to_contain_text("versions 610 to 660, back to 609 by ada")
    expect(page.get_by_role("region", name="Services")).to_contain_text("rollout/1")


def test_a_chart_that_has_nothing_yet_is_drawn_in_other_colours_too(browser: Browser) -> None:
    with seeded() as rest:
        rest.state.redis.delete(f"five:{RUN}:series:ratings")
        watched = Watched(browser, rest.url, color_scheme="light")
        page = watched.log_in(rest, OPERATOR)
        expect(page.get_by_text("nothing yet").first).to_be_visible()
        page.get_by_role("button", name="Dark colours").click()
        page.wait_for_timeout(500 * PATIENCE)
        page.get_by_role("button", name="Light colours").click()
        page.wait_for_timeout(500 * PATIENCE)
        assert lines_drawn(page) >= 12
        watched.close()  # nothing was thrown


def test_a_stretch_and_a_moment_stand_in_the_address_and_are_shown_on_all_charts(
    watched: Watched, rest: LiveController
) -> None:
    page = watched.log_in(rest, OPERATOR)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_selector(".chart canvas")
    page.get_by_role("button", name="1 d", exact=True).click()
    page.wait_for_url(re.compile(r"from=\d+&to=\d+"))
    page.wait_for_timeout(500 * PATIENCE)
    kinds = {
        kind for kind in ("versions", "games", "ratings") for url in asked if f"curves/{kind}" in url and "from=" in url
    }
    assert kinds == {"versions", "games", "ratings"}
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
    """When the branch that was left went on, and when the run did after it: from marks of versions 250 and 661."""
    marks = {mark["kind"]: mark["at"] for mark in rest.ask("GET", "/v1/console/marks").json() if mark["version"]}
    a_version = (marks["revert"] - marks["surgery"]) / 411
    return marks["revert"] - 48 * a_version, marks["revert"] - 4 * a_version


def strokes(page: Page, title: str) -> tuple[int, int]:
    """Pixels of a chart's first line: those that cover what is below, and those that let it through."""
    found = page.evaluate("""(title) => {
        const heading = [...document.querySelectorAll('.chart h3')].find((h) => h.textContent === title);
        const canvas = heading.closest('.chart').querySelector('canvas');
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


def test_a_branch_that_was_left_is_drawn_as_a_ghost(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    since, until = reverted(rest)
    drawn = []
    for start, end in ((since, until), (since - 40_000, until - 40_000)):
        watched.visit(f"/?from={start:.0f}&to={end:.0f}")
        page.locator(".chart canvas").nth(12).wait_for()
        page.wait_for_timeout(800 * PATIENCE)
        drawn.append(strokes(page, "Policy"))
    (ghost_whole, ghost_faint), (whole, faint) = drawn
    assert ghost_faint > 50 and ghost_whole < ghost_faint / 10, drawn
    assert whole > 300 and faint < whole / 2, drawn  # edges of a line that is whole are faint as well


def test_hovering_one_chart_reads_all_of_them_at_that_moment(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    page.locator(".chart canvas").nth(12).wait_for()
    page.wait_for_timeout(800 * PATIENCE)
    values = page.locator(".chart .legend").all_inner_texts
    newest = values()
    box = page.locator(".chart", has=page.get_by_role("heading", name="Staleness")).locator(".u-over").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 40)
    page.wait_for_timeout(300 * PATIENCE)
    then = values()
    titles = page.locator(".chart h3").all_inner_texts()
    moved = {title for title, a, b in zip(titles, newest, then, strict=True) if a != b}
    assert {"TrueSkill", "Staleness", "Hero-steps", "Schedules", "Last hits, denies"} <= moved, moved
    page.mouse.move(5, 5)
    page.wait_for_timeout(300 * PATIENCE)
    assert values() == newest


def test_what_is_hostile_is_text(watched: Watched, rest: LiveController) -> None:
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


def many(rest: LiveController, first: int, last: int) -> None:
    """Events numbered from first to last - 1, at once."""
    pipeline = rest.state.redis.pipeline(transaction=False)
    for n in range(first, last):
        pipeline.xadd(rest.state.keys.events, {"who": "grace", "what": "test.many", "details": json.dumps({"n": n})})
    pipeline.execute()


def test_what_comes_between_the_list_and_the_connection_is_shown(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)

    def late(route: Route) -> None:
        expect(page.get_by_role("heading", name="Events")).to_be_visible()
        rest.state.events.append("grace", "test.between", {"n": 42})
        route.continue_()

    page.route("**/v1/console/stream", late)
    watched.visit("/events")
    expect(page.get_by_role("cell", name="test.between")).to_be_visible()


def test_an_events_page_left_open_holds_one_stretch_without_a_gap(browser: Browser) -> None:
    with seeded() as rest:
        watched = Watched(browser, rest.url)
        page = watched.log_in(rest, OPERATOR)
        watched.visit("/events")
        table = page.get_by_role("region", name="Events").locator("tbody tr")
        expect(page.get_by_role("cell", name="run.created")).to_be_visible()
        before = table.count()
        for first, last in ((0, 700), (700, 1400)):  # more than one look of the stream tells
            many(rest, first, last)
            expect(table).to_have_count(before + last, timeout=30_000 * PATIENCE)
        many(rest, 1400, 2300)
        bounded = page.get_by_role("status").filter(has_text="and older ones")
        expect(bounded).to_have_text("2000 of 2000, and older ones", timeout=30_000 * PATIENCE)
        numbers = "(rows) => rows.map((row) => Number(/^n (\\d+)$/.exec(row.cells[3].textContent)?.[1] ?? -1))"
        assert table.evaluate_all(numbers) == list(range(2299, 299, -1))
        while page.get_by_role("button", name="Older").count():
            had = table.count()
            page.get_by_role("button", name="Older").click()
            expect(table).not_to_have_count(had, timeout=30_000 * PATIENCE)
        assert [n for n in table.evaluate_all(numbers) if n >= 0] == list(range(2299, -1, -1))
        expect(table).to_have_count(before + 2300)
        many(rest, 2300, 3800)  # more than one answer holds: it begins again at the newest, and goes back from there
        expect(page.get_by_role("cell", name="n 3799", exact=True)).to_be_attached(timeout=30_000 * PATIENCE)
        newest = table.evaluate_all(numbers)
        assert newest == list(range(3799, 3799 - len(newest), -1))
        watched.close()


def test_the_league_shows_how_often_each_version_is_drawn(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    watched.visit("/league")
    cells = page.get_by_role("region", name="Opponent pool").locator("tbody tr td:nth-child(2)")
    expect(cells).to_have_count(45)
    assert sum(float(text.removesuffix(" %")) for text in cells.all_inner_texts()) == pytest.approx(100, abs=2.5)


def act(page: Page, button: str, **dialog: str) -> None:
    """Asks for an act, and confirms it once it says what it would do."""
    page.get_by_role("button", name=button, exact=True).click()
    shown = page.get_by_role("dialog")
    for label, text in dialog.items():
        shown.get_by_label(label).fill(text)
    confirm = shown.get_by_role("button", name=button, exact=True)
    expect(confirm).to_be_enabled()
    confirm.click()
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_pausing_is_asked_once_after_what_it_would_do(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    watched.visit("/steering")
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("The run would be pausing; it is running now")
    page.get_by_role("button", name="Not now").click()
    now = rest.state.status()
    assert now is not None and now.status is Status.RUNNING
    act(page, "Pause", Reason="a look")
    expect(page.get_by_role("banner").get_by_role("status")).to_contain_text("pausing")
    now = rest.state.status()
    assert now is not None and (now.who, now.reason) == ("ada", "a look")
    act(page, "Resume")
    expect(page.get_by_role("banner").get_by_role("status")).to_contain_text("running")


def test_a_schedule_is_edited_as_a_curve(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    watched.visit("/steering")
    page.get_by_role("button", name="entropy coefficient").click()
    page.get_by_label("to", exact=True).fill("0.004")
    page.get_by_label("over versions").first.fill("50")
    act(page, "Change schedule", Reason="less noise")
    expect(page.get_by_role("region", name="Changes of schedules")).to_contain_text("0.004 by version 951")
    schedules = rest.state.schedules()
    assert isinstance(schedules, dict) and schedules["entropy_coefficient"]["ramps"][-1]["to"] == 0.004


def test_a_plan_that_is_pasted_has_its_table_and_its_lint(watched: Watched, rest: LiveController) -> None:
    before = rest.state.record()
    assert before is not None
    spec = AgentSpec(GAME, MODEL)
    rest.state.set_record(before, before.changed(new_epoch=False, **spec.trees()), "test", "record.set", {})
    page = watched.log_in(rest, OPERATOR)
    watched.visit("/steering")
    plan = page.get_by_label("Plan", exact=True)
    changes = page.get_by_role("region", name="Changes", exact=True)
    wider = "name: wider\nparent: {}\nsteps:\n- kind: grow_lstm\n  to: {}\n"
    plan.fill(wider.format(spec.schema, 16))
    expect(changes).to_contain_text("grow_lstm")
    expect(page.locator(".lint")).to_contain_text("memory")
    to_16 = changes.inner_text()
    plan.fill(wider.format(spec.schema, 24))
    expect(changes).not_to_have_text(to_16)  # it is read again when it changes
    expect(changes).to_contain_text("24")
    plan.fill(wider.format("f" * 16, 24))
    expect(page.get_by_role("alert")).to_contain_text("f" * 16)
    expect(changes).to_be_hidden()
    plan.fill("name: [")
    expect(page.get_by_role("alert")).to_be_visible()


def test_a_plan_is_rehearsed_beside_it_by_whoever_holds_the_run(watched: Watched, rest: LiveController) -> None:
    spec, kept = AgentSpec(GAME, MODEL), Rehearsals(rest.state)
    before = rest.state.record()
    assert before is not None
    rest.state.set_record(before, before.changed(new_epoch=False, **spec.trees()), "test", "record.set", {})
    page = watched.log_in(rest, OPERATOR)
    watched.visit("/steering")
    plan = f"name: wider\nparent: {spec.schema}\nsteps:\n- kind: grow_lstm\n  to: 16\n"
    page.get_by_label("Plan", exact=True).fill(plan)
    expect(page.get_by_role("region", name="Changes", exact=True)).to_contain_text("grow_lstm")
    button = page.get_by_role("button", name="Rehearse plan")
    expect(button).to_have_attribute("aria-disabled", "true")  # nobody holds this run on a machine
    expect(page.get_by_text("five surgery rehearse wider.yaml --versions 10 --games 100")).to_be_visible()
    kept.announce(Rehearser(host="workstation", pid=4711))
    expect(button).to_have_attribute("aria-disabled", "false")
    button.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("workstation")
    dialog.get_by_label("Versions to learn").fill("3")
    dialog.get_by_label("Games of the match").fill("8")
    dialog.get_by_role("button", name="Rehearse plan").click()
    expect(dialog).to_be_hidden()
    expect(page.get_by_text("waits to be taken")).to_be_visible()
    (asked,) = kept.all()
    assert (asked.who, asked.scope.versions, asked.scope.games) == ("ada", 3, 8)

    def goes(**values: Any) -> None:
        kept.hold(asked.id)
        kept.change(asked.id, lambda r: r.model_copy(update=values))

    goes(state=RehearsalState.WARMING, fork="trial-wider", first=900, warm=905, until=908, version=902)
    expect(page.get_by_text("warms up: version 2 of 5")).to_be_visible()
    goes(state=RehearsalState.LEARNING, version=906)
    expect(page.get_by_text("learns: version 1 of 3")).to_be_visible()
    goes(state=RehearsalState.PLAYING, played=4)
    expect(page.get_by_text("plays: 4 of 8 games")).to_be_visible()
    assert watched.faults() == []
    act(page, "Cancel rehearsal", Reason="enough")
    expect(page.get_by_text("is being ended, by ada")).to_be_visible()
    goes(state=RehearsalState.DONE, cancel=None, result=RehearsalResult(
        won=1, drawn=1, lost=6, score=0.19, low=0.05, high=0.4, worse=True))
    result = page.get_by_text("Won 1, drawn 1, lost 6")
    expect(result).to_contain_text("19 % (5 to 40 %, 95 % confidence): worse than before")
    kept.release(asked.id)
    kept.begin(asked.model_copy(update={"id": "rehearsal-2", "digest": "ab" * 32, "name": "deeper", "who": "grace",
                                        "asked_at": asked.asked_at + 1}))
    expect(page.get_by_text("Rehearsal of deeper")).to_be_visible()  # of another plan: shown while it goes on
    expect(button).to_have_attribute("title", "a rehearsal of deeper goes on")
    kept.withdraw()
    expect(page.get_by_text("Rehearsal of deeper")).to_be_hidden()
    expect(result).to_be_visible()


def test_an_operations_steps_show_attempts_and_the_last_error(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    watched.visit("/steering")
    step = page.get_by_role("region", name="Steps").first.locator("tr", has_text="transform")
    cells = step.locator("td").all_inner_texts()
    assert cells[1:3] == ["done", "2"]
    expect(step).to_contain_text("optimizer 0 ended and took the order again")


def test_the_guards_evidence_is_drawn_from_the_first_pair_on_with_both_bounds(watched: Watched, rest: LiveController
                                                                             ) -> None:
    page = watched.log_in(rest, OPERATOR)
    watched.visit("/steering")
    course = page.get_by_role("img", name=re.compile("evidence under the new rule after 40 pairs"))
    paths = [str(path.get_attribute("d")) for path in course.locator("path").all()]
    assert [path.count("L") for path in paths] == [40, 40]  # whoever opens the page sees all of it
    expect(course.get_by_text("fails")).to_be_visible()
    expect(course.get_by_text("passes")).to_be_visible()
    now = rest.ask("GET", "/v1/anneal").json()["findings"][1]
    gauge = page.get_by_role("meter", name="that it loses less than the bound").nth(1)
    assert float(str(gauge.get_attribute("aria-valuenow"))) == pytest.approx(now["harmless"], abs=0.01)


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
        for _ in range(int(reachable) + 25):
            page.keyboard.press("Tab")
        missed = page.evaluate("""() => [...document.querySelectorAll(
            'button, a[href], input, select, textarea, summary')]
            .filter((e) => e.offsetParent !== null && !e.disabled && !reached.has(e))
            .map((e) => e.outerHTML.slice(0, 120))""")
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
def test_team_colours_are_told_apart_without_red_or_green(browser: Browser, rest: LiveController, scheme: str) -> None:
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
