"""The play page in a real browser, against a small server that speaks its protocol with a real game's frames
(tests/console/played.py)."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from dota.config import GameConfig
from dota.tables import load_tables
from tests.console.browser import Watched, until
from tests.console.played import GAME, POOL, PlayedHere
from tests.services.live_controller import OPERATOR, VIEWER, LiveController

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
FIELD = "canvas.moving"


@pytest.fixture
def played(rest: LiveController) -> Iterator[PlayedHere]:
    """A 5v5 after four minutes, when the heroes have learned abilities; the person's hero is Radiant's first."""
    before = list(rest.app.router.routes)
    found = PlayedHere(GameConfig(hero_pool=POOL, start_seconds=0.0), seconds=240)
    found.serve_at(rest)
    yield found
    found.break_off = True
    rest.app.router.routes[:] = before


@pytest.fixture
def watched(browser: Browser, rest: LiveController, played: PlayedHere) -> Iterator[Watched]:
    """A page that is closed before the game's server, because it would connect to the controller's own route."""
    found = Watched(browser, rest.url, viewport={"width": 1280, "height": 800})
    yield found
    found.close()


def data(page: Page, name: str) -> str:
    return page.locator(FIELD).get_attribute(f"data-{name}") or ""


def begin(watched: Watched, rest: LiveController) -> Page:
    """Log in and open the game; wait until it is drawn."""
    page = watched.log_in(rest, OPERATOR)
    page.goto(f"{rest.url}/play/{GAME}")
    page.wait_for_function(f"() => Number(document.querySelector('{FIELD}')?.dataset.frames) > 5")
    until(page, lambda: data(page, "pixel"))
    return page


def centre(page: Page) -> tuple[float, float]:
    """Centre the view on the hero and return its position in the canvas, pixels. A walking hero is near the middle."""
    box = page.locator(FIELD).bounding_box()
    assert box is not None

    def position() -> tuple[float, float] | None:
        page.keyboard.press("Space")
        page.wait_for_timeout(100)
        x, y = (float(v) for v in data(page, "pixel").split(","))
        return (x, y) if abs(x - box["width"] / 2) < 60 and abs(y - box["height"] / 2) < 60 else None

    x, y = until(page, position)
    return float(x), float(y)


def test_a_game_opens_with_the_chosen_settings(watched: Watched, rest: LiveController, played: PlayedHere) -> None:
    page = watched.log_in(rest, OPERATOR)
    watched.visit("/play")
    expect(page.get_by_role("region", name="Ratings")).to_contain_text("<b>ada</b>")  # a name is text
    expect(page.get_by_role("region", name="Recordings")).to_contain_text("<b>ada</b>")
    page.get_by_label("Side").select_option("Dire")
    page.get_by_label("Against").select_option("version 100")
    page.get_by_label("drawn from the pool").uncheck()
    page.get_by_label("Dire, hero 2", exact=True).select_option("viper")
    page.get_by_role("group", name="Line-ups").get_by_label("mine").nth(1).check()
    assert watched.faults() == []
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_url(f"{rest.url}/play/{GAME}")
    (asked,) = played.opened
    assert asked["team"] == 1 and asked["heroes"] == [0, 1] and asked["with"] == "agent" and asked["against"] == "100"
    assert asked["lineup"][1][1] == "viper" and asked["seed"] is None
    page.wait_for_function(f"() => Number(document.querySelector('{FIELD}')?.dataset.frames) > 5")


def test_a_draft_can_be_played(watched: Watched, rest: LiveController, played: PlayedHere) -> None:
    radiant, dire = POOL[:5], POOL[5:] + POOL[:4]
    page = watched.log_in(rest, OPERATOR)
    page.goto(f"{rest.url}/play?radiant={','.join(radiant)}&dire={','.join(dire)}&side=D")
    expect(page.get_by_label("drawn from the pool")).not_to_be_checked()
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_url(f"{rest.url}/play/{GAME}")
    (asked,) = played.opened
    assert asked["team"] == 1 and asked["lineup"] == [radiant, dire]
    # Settings that the run does not play are ignored.
    watched.visit("/play?radiant=nobody&dire=<b>x</b>")
    expect(page.get_by_label("drawn from the pool")).to_be_checked()


def test_mouse_and_keys_become_orders(
        watched: Watched, rest: LiveController, played: PlayedHere) -> None:
    page = begin(watched, rest)
    box = page.locator(FIELD).bounding_box()
    assert box is not None
    x, y = (float(v) for v in data(page, "pixel").split(","))
    middle = (box["x"] + x, box["y"] + y)
    page.mouse.click(middle[0] + 160, middle[1] - 130, button="right")
    until(page, lambda: [m for m in played.heard if m["type"] == "order"])
    page.keyboard.press("s")
    page.keyboard.press("h")
    page.keyboard.press("a")
    expect(page.locator(".field")).to_have_class("field aiming")
    page.mouse.click(middle[0] + 170, middle[1] + 40)
    page.keyboard.press("a")
    page.keyboard.press("Escape")
    expect(page.locator(".field")).to_have_class("field")
    page.keyboard.down("Shift")
    page.mouse.click(middle[0] - 120, middle[1] + 60, button="right")
    page.keyboard.up("Shift")
    until(page, lambda: len(played.heard) >= 5)
    orders = [m for m in played.heard if m["type"] == "order"]
    assert [m["n"] for m in orders] == list(range(1, len(orders) + 1))
    assert [m["kind"] for m in orders][1:3] == ["stop", "hold"]
    assert orders[0]["kind"] in ("move", "attack", "follow", "pickup")
    assert orders[3]["kind"] in ("attack_move", "attack")
    assert [m["queue"] for m in orders] == [False, False, False, False, True]
    assert all(0 <= v <= 65535 for m in orders for v in m.get("at", ()))
    until(page, lambda: int(data(page, "acks")) == len(orders))
    until(page, lambda: data(page, "shown99") not in ("", "NaN"))
    expect(page.locator(".delay")).to_contain_text("ms")


def test_keys_of_a_cyrillic_keyboard_become_orders(
        watched: Watched, rest: LiveController, played: PlayedHere) -> None:
    page = begin(watched, rest)
    page.locator("[data-field]").dispatch_event("keydown", {"key": "ы", "code": "KeyS", "bubbles": True})
    until(page, lambda: played.orders("stop"))


def test_a_click_lands_where_the_map_shows_it(watched: Watched, rest: LiveController, played: PlayedHere) -> None:
    page = begin(watched, rest)
    x, y = centre(page)
    box = page.locator(FIELD).bounding_box()
    assert box is not None
    hx = float(data(page, "hero").split(",")[0])
    page.keyboard.press("a")
    page.mouse.click(box["x"] + x + 200, box["y"] + y)
    until(page, lambda: played.orders("attack_move") or played.orders("attack"))
    page.keyboard.press("a")
    page.mouse.click(box["x"] + x + 200, box["y"] + y - 100)
    until(page, lambda: len(played.orders("attack_move") + played.orders("attack")) == 2)
    found = [m["at"] for m in played.orders("attack_move")]
    assert found, "nothing stood in the way of both clicks"
    for at in found:
        wx = -8320 + at[0] / 65535 * 16640
        assert hx + 200 < wx < hx + 1500  # east of the hero, within the screen
    if len(found) == 2:
        assert found[0][0] == pytest.approx(found[1][0], abs=250) and found[1][1] > found[0][1] + 500


def test_a_scan_is_aimed_and_says_when_it_can_be(watched: Watched, rest: LiveController, played: PlayedHere) -> None:
    page = begin(watched, rest)
    page.keyboard.press("Space")
    button = page.get_by_role("button", name="Scan")
    expect(button).to_contain_text(":")  # the horn was a minute ago
    button.click(force=True)  # it can be aimed before it is ready, as an ability can
    expect(page.locator(".field")).to_have_class("field aiming")
    box = page.locator(FIELD).bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    until(page, lambda: played.orders("scan"))
    assert len(played.orders("scan")[0]["at"]) == 2
    expect(page.locator(".field")).to_have_class("field")
    assert watched.faults() == []


def test_abilities_are_aimed_cast_learned_and_cast_on_oneself(
        watched: Watched, rest: LiveController, played: PlayedHere) -> None:
    page = begin(watched, rest)
    bar = page.get_by_role("group", name="Abilities")
    expect(bar.locator(".ability")).to_have_count(4)
    names = bar.locator(".ability").all_inner_texts()
    assert names[0].startswith("Q") and "shrapnel" in names[0] and "sniper" not in names[0]
    played.refuse["level"] = "points"
    page.keyboard.press("Control+q")
    until(page, lambda: played.orders("level"))
    expect(page.locator(".notices")).to_contain_text("no point to spend")
    page.keyboard.press("l")
    expect(page.get_by_text("Learn: press an ability")).to_be_visible()
    page.keyboard.press("e")
    until(page, lambda: len(played.orders("level")) == 2)
    # The first ability that is learned and takes a target: the cursor waits, Escape cancels, twice is oneself.
    facts = json.loads(page.evaluate("() => JSON.stringify([...document.querySelectorAll('.ability')].map(b => "
                                     "[b.querySelector('kbd').textContent, b.className]))"))
    known = [key for key, style in facts if "unlearned" not in style and "passive" not in style]
    assert known, facts
    for key in known:
        page.keyboard.press(key.lower())
        page.keyboard.press(key.lower())
    until(page, lambda: played.orders("cast"))
    casts = played.orders("cast")
    assert all(0 <= cast["slot"] < 6 for cast in casts)
    page.keyboard.press("Alt+" + known[0].lower())
    until(page, lambda: played.orders("toggle"))


def test_the_shop_sells_items_or_shows_the_refusal(
        watched: Watched, rest: LiveController, played: PlayedHere) -> None:
    page = begin(watched, rest)
    page.keyboard.press("m")
    shop = page.get_by_role("region", name="Shop")
    expect(shop.get_by_role("heading", name="Recommended to begin with")).to_be_visible()
    assert shop.locator(".offer").count() > 130
    # Stock of limited items, which the game sends to this side only.
    schema = played.schema.table("stock")
    ward = load_tables(played.config.patch).items.index("item_ward_observer") + 1

    def stock() -> str:
        frame = played.schema.empty()
        played.game.write_seen(0, frame)
        left = next(int(row[schema.column("left")]) for row in frame["stock"] if row[0] == ward)
        return f"{left} left" if left else "out of stock until"

    shop.get_by_label("Search").fill("ward observer")
    offered = shop.get_by_role("button", name="Buy ward observer")
    until(page, lambda: stock() in offered.inner_text())  # bots buy meanwhile
    shop.get_by_label("Search").fill("branches")
    expect(shop.get_by_role("button", name="Buy branches")).not_to_contain_text("left")
    shop.get_by_label("Search").fill("blink")
    offer = shop.get_by_role("button", name="Buy blink for 2250 gold")
    offer.click()
    until(page, lambda: played.orders("buy"))
    assert played.orders("buy")[0]["item"] == "item_blink"
    expect(shop.get_by_role("status")).to_contain_text("not enough gold")
    assert watched.faults() == []
    page.keyboard.press("Escape")
    expect(shop).to_be_hidden()
    page.keyboard.press("z")
    until(page, lambda: played.orders("use") or page.locator(".field.aiming").count()
          or page.get_by_text("nothing in that slot").count())


def test_the_mini_map_moves_the_view_pings_and_gives_orders(
        watched: Watched, rest: LiveController, played: PlayedHere) -> None:
    page = begin(watched, rest)
    map_ = page.get_by_role("img", name="Mini map")
    before = data(page, "pixel")
    map_.click(position={"x": 120, "y": 20})
    until(page, lambda: data(page, "pixel") != before)
    map_.click(position={"x": 60, "y": 60}, modifiers=["Alt"])
    until(page, lambda: [m for m in played.heard if m["type"] == "ping"])
    (ping,) = [m for m in played.heard if m["type"] == "ping"]
    side = map_.bounding_box()
    assert side is not None
    assert ping["at"][0] == pytest.approx(65535 * 60 / side["width"], abs=1500)
    assert ping["at"][1] == pytest.approx(65535 * (1 - 60 / side["height"]), abs=1500)
    was = data(page, "hero")
    map_.click(position={"x": 40, "y": 90}, button="right")
    until(page, lambda: played.orders("move"))
    until(page, lambda: data(page, "hero") != was)  # it goes there
    page.locator("[data-field]").focus()
    centre(page)


def test_everything_is_reached_by_keyboard(watched: Watched, rest: LiveController, played: PlayedHere) -> None:
    page = begin(watched, rest)
    page.keyboard.press(".")
    page.keyboard.press("Alt+ArrowRight")
    page.keyboard.press("Alt+ArrowRight")
    page.keyboard.press("Enter")
    until(page, lambda: [m for m in played.heard if m["type"] == "order"])
    page.keyboard.down("Tab")
    expect(page.get_by_role("region", name="Scoreboard")).to_be_visible()
    page.keyboard.up("Tab")
    expect(page.get_by_role("region", name="Scoreboard")).to_be_hidden()
    page.keyboard.press("Escape")  # nothing is aimed: to the buttons
    expect(page.locator(".purse button").first).to_be_focused()
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.textContent.trim().slice(0, 30)"))
    assert {"Leave the game", "Full screen", "Keys", "Glyph", "Deliver", "Give my hero to the agent"} <= reached
    page.get_by_role("button", name="Keys").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Keys")).to_contain_text("attack")
    assert watched.faults() == []


def test_a_hero_is_handed_to_the_agent_and_taken_back(
        watched: Watched, rest: LiveController, played: PlayedHere) -> None:
    page = begin(watched, rest)
    page.get_by_role("button", name="Give my hero to the agent").click()
    back = page.get_by_role("button", name="Take my hero back")
    back.click()
    expect(page.get_by_role("button", name="Give my hero to the agent")).to_be_visible()
    assert [(m["held"], m["hero"]) for m in played.heard if m["type"] == "hand"] == [(False, 0), (True, 0)]


def test_orders_to_a_hero_of_the_agent_say_who_has_it(
        watched: Watched, rest: LiveController, played: PlayedHere) -> None:
    page = begin(watched, rest)
    played.refuse["stop"] = "agent"
    page.keyboard.press("s")
    expect(page.locator(".notices")).to_contain_text("the agent has your hero")


def test_without_a_server_no_game_is_listed(watched: Watched, rest: LiveController, played: PlayedHere) -> None:
    played.opened.append({})  # lists the game
    page = watched.log_in(rest, OPERATOR)
    watched.visit("/play")
    games = page.get_by_role("region", name="Games")
    expect(games.get_by_role("link", name="Watch")).to_be_visible()
    offer = {"server": False, "why": "the play service is unavailable"}
    page.route("**/v1/play", lambda route: route.fulfill(json=offer))
    expect(games).to_contain_text("None.")


def test_a_viewer_sees_games_but_cannot_open_one(browser: Browser, rest: LiveController, played: PlayedHere) -> None:
    watched = Watched(browser, rest.url)
    page = watched.log_in(rest, VIEWER)
    watched.visit("/play")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_disabled()
    expect(page.get_by_text("playing takes the role operator")).to_be_visible()
    watched.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 1920])
def test_the_page_fits_and_passes_the_accessibility_check(browser: Browser, rest: LiveController, played: PlayedHere,
                                                          scheme: str,
                                                          width: int) -> None:
    watched = Watched(browser, rest.url, color_scheme=scheme, viewport={"width": width, "height": width * 5 // 8})
    page = begin(watched, rest)
    expect(page.get_by_role("button", name="Give my hero to the agent")).to_be_visible()
    page.wait_for_timeout(300)
    assert watched.faults() == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("document.querySelector('.under').getBoundingClientRect().bottom <= innerHeight + 1")
    watched.close()
