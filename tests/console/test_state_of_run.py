"""Pages of a run that is missing, stalled or failed, and the number of requests while it continues."""

import json
import re
import time

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.console.browser import PATIENCE, Watched, until
from tests.console.seeded import seeded
from tests.services.live_controller import OPERATOR, RUN, LiveController

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def test_missing_run_is_reported(browser: Browser) -> None:
    with seeded() as rest:
        rest.state.redis.flushall()
        watched = Watched(browser, rest.url)
        page = watched.log_in(rest, OPERATOR)
        expect(page.get_by_text(f"Run {RUN} does not exist")).to_be_visible()
        watched.close()


def test_stalled_run_is_reported(watched: Watched, rest: LiveController) -> None:
    overview = {**rest.ask("GET", "/v1/status").json(), "stalled_seconds": 7199.6}
    body = f"event: overview\ndata: {json.dumps(overview)}\n\n"
    watched.page.route("**/v1/console/stream",
                       lambda route: route.fulfill(content_type="text/event-stream", body=body))
    page = watched.log_in(rest, OPERATOR)
    expect(page.get_by_text("No new version for 2 h 0 min")).to_be_visible()


def test_small_rating_is_shown_without_an_exponent(watched: Watched, rest: LiveController) -> None:
    overview = rest.ask("GET", "/v1/status").json()
    overview["newest"]["ratings"] = {"mu": -0.04, "sigma": 0.83}
    body = f"event: overview\ndata: {json.dumps(overview)}\n\n"
    watched.page.route("**/v1/console/stream",
                       lambda route: route.fulfill(content_type="text/event-stream", body=body))
    page = watched.log_in(rest, OPERATOR)
    expect(page.locator(".facts")).to_contain_text("0.0 ± 0.8")
    expect(page.locator(".facts")).not_to_contain_text("-0.0")


def test_durations_follow_the_controllers_clock(watched: Watched, rest: LiveController) -> None:
    watched.page.clock.install(time=time.time() + 86400)
    page = watched.log_in(rest, OPERATOR)
    heartbeats = page.get_by_role("region", name="Services").locator("tbody td:nth-child(3)")
    expect(heartbeats.first).to_have_text(re.compile(r"^\d+ (s|min)$"))  # and not a day


def test_time_line_shows_a_failure_after_the_last_record(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    lane = page.get_by_role("region", name="Time line")
    expect(lane).to_be_visible()
    rest.state.events.append("controller", "run.failed", {"reason": "the disk is full"})
    expect(lane.get_by_role("button", name=re.compile("the disk is full"))).to_be_visible()


def test_group_of_many_marks_names_the_first_of_them(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    lane = page.get_by_role("region", name="Time line")
    expect(lane).to_be_visible()
    for n in range(40):
        rest.state.events.append("ada", "run.pausing", {"reason": f"reason {n}"})
    group = lane.get_by_role("button", name=re.compile(r"and \d+ more"))
    expect(group).to_be_visible()
    assert len(str(group.get_attribute("title")).splitlines()) == 13


def test_filter_of_a_link_is_shown_without_matching_events(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    watched.visit("/events?who=somebody")
    expect(page.get_by_label("Who")).to_have_value("somebody")


def test_failure_to_list_recordings_stays_visible(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    page.route("**/v1/replays", lambda route: route.fulfill(status=503, json={"detail": "the blob store is away"}))
    watched.visit("/games")
    expect(page.get_by_role("alert")).to_contain_text("the blob store is away")
    page.wait_for_timeout(3000)  # the games in progress are listed again meanwhile
    expect(page.get_by_role("alert")).to_be_visible()
    page.unroute("**/v1/replays")
    expect(page.get_by_role("alert")).to_be_hidden()


def test_many_events_at_once_are_one_request(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    expect(page.get_by_role("region", name="Time line")).to_be_visible()
    page.wait_for_timeout(1000 * PATIENCE)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    pipeline = rest.state.redis.pipeline(transaction=False)
    for n in range(300):
        pipeline.xadd(rest.state.keys.events, {"who": "grace", "what": "test.many", "details": json.dumps({"n": n})})
    pipeline.execute()

    def requests() -> int:
        return sum(url.endswith("/v1/console/timeline") for url in asked)

    until(page, requests)
    page.wait_for_timeout(4000 * PATIENCE)
    assert requests() < 10


def test_marks_are_read_after_the_clock_was_set_back(watched: Watched, rest: LiveController) -> None:
    watched.page.clock.install()
    page = watched.log_in(rest, OPERATOR)
    expect(page.get_by_role("banner").get_by_role("status")).to_be_visible()
    expect(page.get_by_role("region", name="Time line")).to_be_visible()
    page.clock.fast_forward(5000)  # what the first messages of the stream requested is read
    page.clock.set_system_time(time.time() - 86400)
    with page.expect_request("**/v1/console/timeline"):
        rest.state.events.append("grace", "test.noted", {"n": 1})


def test_late_marks_do_not_replace_newer_ones(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    held: list[Route] = []
    page.route("**/v1/console/timeline", lambda route: held.append(route))
    watched.visit("/")
    until(page, lambda: held)
    rest.state.events.append("grace", "test.noted", {"n": 1})
    until(page, lambda: len(held) > 1)
    mark = {"at": time.time() - 60, "kind": "pause", "label": "the newer answer", "who": "ada", "version": None}
    held[1].fulfill(json=[mark])
    shown = page.get_by_role("region", name="Time line").get_by_role("button", name=re.compile("the newer answer"))
    expect(shown).to_be_visible()
    with page.expect_response(held[0].request.url):
        held[0].fulfill(json=[])
    page.wait_for_timeout(500)
    expect(shown).to_be_visible()


def test_schedule_is_read_again_while_events_go_on(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    watched.visit("/steering")
    expect(page.get_by_role("button", name="Change schedule")).to_be_visible()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for n in range(120):  # two a second, more often than the schedule is read
        rest.state.events.append("grace", "test.noted", {"n": n})
        page.wait_for_timeout(500)
        if any(url.endswith("/v1/schedules/learning_rate") for url in asked):
            return
    pytest.fail("the schedule is not read again")
