"""The steering page: every action shows its dry run and asks for one confirmation."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from five.agent.surgery import AgentSpec
from five.services.controller.surgery import rehearsals
from five.services.controller.surgery.rehearsals import RehearsalResult, Rehearsals, RehearsalState, RehearsalWorker
from rapid.store.state import Status
from tests.console.browser import Watched, until
from tests.services.live_controller import OPERATOR, LiveController
from tests.services.optimizer_cases import GAME, MODEL

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def act(page: Page, button: str, **dialog: str) -> None:
    """Open the dialog of an action, fill it in, and confirm it once the dry run is shown."""
    page.get_by_role("button", name=button, exact=True).click()
    shown = page.get_by_role("dialog")
    for label, text in dialog.items():
        shown.get_by_label(label).fill(text)
    confirm = shown.get_by_role("button", name=button, exact=True)
    expect(confirm).to_be_enabled()
    confirm.click()
    expect(page.get_by_role("dialog")).to_be_hidden()


def confirm_in_the_next_epoch(page: Page, button: str, begin_next_epoch: Callable[[], None], sent: list[dict[str, Any]]
                              ) -> dict[str, Any]:
    """Open the dialog of an action, confirm it in the epoch after its dry run, and return the request."""
    page.get_by_role("button", name=button).click()
    confirm = page.get_by_role("dialog").get_by_role("button", name=button)
    expect(confirm).to_be_enabled()
    begin_next_epoch()
    confirm.click()
    until(page, lambda: sent)
    return sent[0]


def test_pausing_asks_for_one_confirmation(watched: Watched, rest: LiveController) -> None:
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
    lasting = page.get_by_text(re.compile(r"It is pausing for \d+ s, by ada: a look"))
    before = lasting.inner_text()
    expect(lasting).not_to_have_text(before)  # nothing else changes meanwhile
    act(page, "Resume")
    expect(page.get_by_role("banner").get_by_role("status")).to_contain_text("running")


def test_dialog_stays_open_until_the_answer(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    watched.visit("/steering")
    held: list[Route] = []
    # Without the dry run, whose address has a query. Playwright sets an attribute of the handler.
    page.route("**/v1/pause", lambda route: held.append(route))
    page.get_by_role("button", name="Pause", exact=True).click()
    dialog = page.get_by_role("dialog")
    confirm = dialog.get_by_role("button", name="Pause", exact=True)
    expect(confirm).to_be_enabled()
    with page.expect_request("**/v1/pause"):
        confirm.click()
    until(page, lambda: held)
    expect(dialog.get_by_role("button", name="Not now")).to_be_disabled()
    page.keyboard.press("Escape")
    expect(dialog).to_be_visible()
    held[0].fulfill(status=503, json={"detail": "the store does not answer"})
    expect(dialog.get_by_role("alert")).to_contain_text("the store does not answer")


def test_action_without_an_answer_ends(watched: Watched, rest: LiveController) -> None:
    watched.page.clock.install()
    page = watched.log_in(rest, OPERATOR)
    watched.visit("/steering")
    held: list[Route] = []
    page.route("**/v1/pause", lambda route: held.append(route))  # Playwright sets an attribute of the handler
    page.get_by_role("button", name="Pause", exact=True).click()
    dialog = page.get_by_role("dialog")
    confirm = dialog.get_by_role("button", name="Pause", exact=True)
    expect(confirm).to_be_enabled()
    confirm.click()
    until(page, lambda: held)
    page.clock.fast_forward(60_000)
    expect(dialog.get_by_role("alert")).to_contain_text("the controller does not answer")
    expect(dialog.get_by_role("button", name="Close")).to_be_enabled()


def test_refusal_of_a_proxy_shows_its_status(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    watched.visit("/steering")
    page.route("**/v1/pause?*", lambda route: route.fulfill(status=502, json={"message": "no healthy upstream"}))
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("the controller answered 502")


def test_revert_says_that_older_versions_are_not_listed(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    items = [{"version": v, "complete": True, "epoch": 1, "line": True} for v in (900, 880)]
    page.route("**/v1/revert/targets?*", lambda route: route.fulfill(json={"items": items, "total": 500, "next": 2}))
    watched.visit("/steering")
    expect(page.get_by_text("The newest 2 of 500 versions are listed")).to_be_visible()


def test_versions_to_revert_to_are_read_after_an_error(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    targets = "**/v1/revert/targets?*"
    page.route(targets, lambda route: route.fulfill(status=503, json={"detail": "the blob store is away"}))
    watched.visit("/steering")
    alert = page.get_by_role("alert").filter(has_text="the blob store is away")
    expect(alert).to_be_visible()
    page.unroute(targets)
    expect(alert).to_be_hidden()


def stream_epochs(page: Page, rest: LiveController) -> Callable[[], None]:
    """Replace the stream by one of the run in epoch 1. Return a function that begins epoch 2 and waits until the page
    has received it.
    """
    now = {**rest.ask("GET", "/v1/status").json(), "epoch": 1}
    streamed: list[int] = []  # the epoch of each connection

    def stream(route: Route) -> None:
        streamed.append(now["epoch"])
        body = f"retry: 100\nevent: overview\ndata: {json.dumps(now)}\n\n"
        route.fulfill(content_type="text/event-stream", body=body)

    def begin_next() -> None:
        now["epoch"] = 2
        until(page, lambda: streamed.count(2) == 2)  # the page has received the first of both

    page.route("**/v1/console/stream", stream)
    return begin_next


def test_revert_names_the_epoch_of_its_preview(watched: Watched, rest: LiveController) -> None:
    page = watched.page
    begin_next_epoch = stream_epochs(page, rest)
    sent: list[dict[str, Any]] = []

    def revert(route: Route) -> None:
        sent.append(route.request.post_data_json)
        route.fulfill(status=202, json={})

    items = [{"version": 880, "complete": True, "epoch": 1, "line": True}]
    page.route("**/v1/revert/targets?*", lambda route: route.fulfill(json={"items": items, "total": 1, "next": None}))
    lists: dict[str, list[Any]] = {name: [] for name in (
        "versions", "surgeries", "record", "schedules", "opponents", "ratings", "references")}
    preview = {"to_version": 880, "head": 900, "complete": True, "anneal": "", **lists}
    page.route("**/v1/revert/880", lambda route: route.fulfill(json=preview))
    page.route("**/v1/revert?*", lambda route: route.fulfill(json={}))
    page.route("**/v1/revert", revert)
    watched.log_in(rest, OPERATOR)
    watched.visit("/steering")
    expect(page.get_by_role("banner").get_by_role("status")).to_be_visible()
    page.get_by_label("Back to version").select_option("880")
    assert confirm_in_the_next_epoch(page, "Revert run", begin_next_epoch, sent)["epoch"] == 1


def test_a_schedule_is_edited_as_a_curve(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    watched.visit("/steering")
    page.get_by_role("button", name="entropy coefficient").click()
    value = page.get_by_label("to", exact=True)
    for typed, expected in (("25e-4", "0.0025"), ("0.004", "0.004")):  # key by key: neither "25e-" nor "0." is a number
        value.fill("")
        value.press_sequentially(typed)
        value.blur()
        expect(value).to_have_value(expected)
    page.get_by_label("over versions").first.fill("50")
    act(page, "Change schedule", Reason="less noise")
    expect(page.get_by_role("region", name="Changes of schedules")).to_contain_text("0.004 by version 951")
    schedules = rest.state.schedules()
    assert isinstance(schedules, dict) and schedules["entropy_coefficient"]["ramps"][-1]["to"] == 0.004


def test_schedule_changes_in_the_epoch_of_its_dry_run(watched: Watched, rest: LiveController) -> None:
    page = watched.page
    begin_next_epoch = stream_epochs(page, rest)
    schedule = rest.ask("GET", "/v1/schedules/learning_rate").json()
    sent: list[dict[str, Any]] = []

    def change(route: Route) -> None:
        if route.request.method == "PUT":
            sent.append(route.request.post_data_json)
            route.fulfill(json=schedule)
        else:
            route.continue_()

    page.route("**/v1/schedules/learning_rate?*", lambda route: route.fulfill(json=schedule))
    page.route("**/v1/schedules/learning_rate", change)
    watched.log_in(rest, OPERATOR)
    watched.visit("/steering")
    expect(page.get_by_role("banner").get_by_role("status")).to_be_visible()
    assert confirm_in_the_next_epoch(page, "Change schedule", begin_next_epoch, sent)["epoch"] == 1


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


def test_unreadable_check_is_reported(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    planned = {"name": "wider", "digest": "ab" * 32, "plan": "name: wider", "changes": [], "lint": [], "anneals": []}
    page.route("**/v1/surgery/read", lambda route: route.fulfill(json=planned))
    page.route("**/v1/surgery/checks/*",
               lambda route: route.fulfill(status=503, json={"detail": "the store does not answer"}))
    watched.visit("/steering")
    page.get_by_label("Plan", exact=True).fill("name: wider")
    expect(page.get_by_role("alert")).to_contain_text("the store does not answer")


def test_late_derived_plan_does_not_replace_an_edited_one(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    held: list[Route] = []
    page.route("**/v1/surgery/plan", lambda route: held.append(route))
    watched.visit("/steering")
    page.get_by_role("button", name="Derive plan").click()
    until(page, lambda: held)
    plan = page.get_by_label("Plan", exact=True)
    plan.fill("name: [")
    derived = {"name": "wider", "digest": "ab" * 32, "plan": "name: wider", "changes": [], "lint": [], "anneals": []}
    with page.expect_response("**/v1/surgery/plan"):
        held[0].fulfill(json=derived)
    page.wait_for_timeout(500)
    expect(plan).to_have_value("name: [")


def test_late_check_of_another_plan_is_not_shown(watched: Watched, rest: LiveController) -> None:
    before = rest.state.record()
    assert before is not None
    spec = AgentSpec(GAME, MODEL)
    rest.state.set_record(before, before.changed(new_epoch=False, **spec.trees()), "test", "record.set", {})
    page = watched.log_in(rest, OPERATOR)
    held: list[Route] = []
    page.route("**/v1/surgery/checks/*", lambda route: held.append(route))
    watched.visit("/steering")
    plan = "name: wider\nparent: {}\nsteps:\n- kind: grow_lstm\n  to: {}\n"
    for number, size in enumerate((16, 24), 1):
        page.get_by_label("Plan", exact=True).fill(plan.format(spec.schema, size))
        until(page, lambda: len(held) == number)  # noqa: B023
    check = {"digest": "ab" * 32, "name": "wider", "epoch": 1, "at": 0.0, "who": "ada"}
    held[1].fulfill(json={**check, "result": {"ok": False, "why": "too far off"}})
    report = page.get_by_text("Not to be applied: too far off")
    expect(report).to_be_visible()
    with page.expect_response(held[0].request.url):
        held[0].fulfill(json={**check, "result": {"ok": True}})
    page.wait_for_timeout(500)
    expect(report).to_be_visible()
    expect(page.get_by_role("button", name="Apply plan")).to_have_attribute("aria-disabled", "true")


def test_a_plan_is_rehearsed_by_the_runs_worker(watched: Watched, rest: LiveController,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsals, "LEASE_MS", 600_000)  # nothing here renews a lease
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
    kept.announce(RehearsalWorker(host="workstation", pid=4711))
    expect(button).to_have_attribute("aria-disabled", "false")
    button.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("workstation")
    learned = dialog.get_by_label("Versions to learn")
    learned.fill("")
    learned.blur()
    expect(learned).to_have_value("10")  # the next dry run would name no number
    learned.fill("3")
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
    expect(step).to_contain_text("optimizer 0 ended and took the order again")
    assert step.locator("td").all_inner_texts()[1:3] == ["done", "2"]


def test_guard_evidence_chart_has_both_bounds(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    watched.visit("/steering")
    course = page.get_by_role("img", name=re.compile("evidence under the new rule after 40 pairs"))
    expect(course.locator("path")).to_have_count(2)
    paths = [str(path.get_attribute("d")) for path in course.locator("path").all()]
    assert [path.count("L") for path in paths] == [40, 40]  # the page shows the whole history to every viewer
    expect(course.get_by_text("fails")).to_be_visible()
    expect(course.get_by_text("passes")).to_be_visible()
    now = rest.ask("GET", "/v1/anneal").json()["findings"][1]
    gauge = page.get_by_role("meter", name="that it loses less than the bound").nth(1)
    assert float(str(gauge.get_attribute("aria-valuenow"))) == pytest.approx(now["harmless"], abs=0.01)
