"""The game viewer in a real browser: a live game, a recording with seeking, a hostile file."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
import redis
from playwright.sync_api import expect

from dota.config import GameConfig
from dota.spectator.recording import RecordingIndex, RecordingWriter
from dota.vec_game import Controller, VecGame
from five.services.controller.console.static_files import ConsoleSite
from rapid.blobs import BlobStore
from tests.console import console
from tests.console.browser import Watched, chromium
from tests.services.conftest import redis_client
from tests.services.controller.games.test_live_hub import GAME, playing
from tests.services.live_controller import OPERATOR, RUN, VIEWER, live

__all__ = ["redis_client"]
pytestmark = [pytest.mark.browser, pytest.mark.timeout(300),
              pytest.mark.skipif(bool(console.missing()), reason=console.missing() or "here")]
NAME = '<b class="x">x</b><script>alert(1)</script>'


def recorded(folder: Path) -> BlobStore:
    config = GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], max_game_seconds=600)
    vec = VecGame(config, 1, seed=5, observations=False)
    vec.controllers[:] = [[Controller.HARD, Controller.RANDOM]]
    path = folder / "a.view"
    writer = RecordingWriter(path, config, {"players": ["version-3", NAME]})
    writer.camera.record(vec, 0)
    tower = np.array([u["slot"] for u in vec.spectate(0)["units"] if u["name"] == "npc_dota_goodguys_tower1_mid"])
    while not vec.winner[0]:
        vec.step()
        writer.camera.record_outputs(1, np.array([0.25]), 0.75, 3, np.array([[2, 0, 0, 0, 0, 0]], np.int16))
        writer.camera.choose(5, np.array([1, 2]), np.array([0.3, 0.7]))
        writer.camera.record_building_losses(1, tower, np.array([0.4]))
        writer.camera.record(vec, 0)
    writer.close()
    blobs = BlobStore(str(folder / "blobs"))
    blobs.put(path, f"{RUN}/replays/version-3.view")
    blobs.put(json.dumps({"players": ["version-3", NAME], "at": 1.0}).encode(), f"{RUN}/replays/version-3.json")
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 0xFF
    blobs.put(bytes(data[:40]) + b"\xff" * 400, f"{RUN}/replays/hostile.view")
    return blobs


@pytest.mark.skipif(not ConsoleSite().build, reason="the console is not built: make console")
def test_a_game_is_watched_and_a_recording_scrubbed(redis_client: redis.Redis, redis_url: str, tmp_path: Path) -> None:
    script = console.program(console.CONSOLE / "tests" / "games.ts")
    with live(redis_url, blobs=recorded(tmp_path)) as rest, playing(redis_url):
        (seen,) = console.run(script, rest.url, VIEWER, console.CHROMIUM, "version-3")
    found: dict[str, Any] = seen
    assert found["address"] == f"/games/live/{GAME}"
    assert found["players"] == ["Radiant newest", "Dire <b>x</b>"] and found["injected"] == 0
    assert found["colours"] > 20
    assert found["wentOn"] and found["paused"] and found["rewound"] < 8 and found["backAtTheEdge"]
    assert any("killed nevermore" in line for line in found["feed"]) and any("Radiant won" in line for line in
                                                                             found["feed"])
    assert found["clockAfterTheJump"] != found["clockAtTheEnd"]
    assert "its team wins" in found["thinks"] and "75%" in found["thinks"] and "(chosen)" in found["thinks"]
    assert "header" in found["hostile"] or "recording" in found["hostile"]
    assert found["wrong"] == [], found["wrong"]


@pytest.mark.skipif(not ConsoleSite().build, reason="the console is not built: make console")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_viewer_has_no_serious_fault_at_its_own_address(
        redis_client: redis.Redis, redis_url: str, tmp_path: Path, scheme: str) -> None:
    with live(redis_url, blobs=recorded(tmp_path)) as rest, chromium() as browser:
        watched = Watched(browser, rest.url, color_scheme=scheme)
        page = watched.log_in(rest, OPERATOR)
        watched.visit("/games/replay/version-3")
        page.wait_for_function("() => Number(document.querySelector('canvas.moving')?.dataset.step) > 2")
        page.get_by_role("button", name="Pause").click()
        course, board = (page.locator(part).bounding_box() for part in (".course", ".board"))
        assert course is not None and board is not None and course["width"] == pytest.approx(board["width"], abs=4)
        assert watched.faults() == []
        watched.close()


@pytest.mark.skipif(not ConsoleSite().build, reason="the console is not built: make console")
def test_a_new_build_does_not_interrupt_a_recording(redis_client: redis.Redis, redis_url: str, tmp_path: Path) -> None:
    with live(redis_url, blobs=recorded(tmp_path)) as rest, chromium() as browser:
        watched = Watched(browser, rest.url)
        page = watched.log_in(rest, OPERATOR)
        watched.visit("/games")
        page.get_by_label("Open a recording from a file").set_input_files(tmp_path / "a.view")
        page.wait_for_function("() => Number(document.querySelector('canvas.moving')?.dataset.step) > 2")
        rest.context.site.build = "another"
        expect(page.get_by_text("A new console is there: reload")).to_be_visible()
        page.wait_for_timeout(2000)  # longer than the page waits before it reloads
        expect(page.get_by_role("heading", name="a.view")).to_be_attached()  # a reload would forget the file
        watched.close()


@pytest.mark.skipif(not ConsoleSite().build, reason="the console is not built: make console")
def test_a_recording_with_a_huge_index_is_shown(redis_client: redis.Redis, redis_url: str, tmp_path: Path) -> None:
    with live(redis_url, blobs=recorded(tmp_path)) as rest, chromium() as browser:
        whole = (tmp_path / "a.view").read_bytes()
        at = int.from_bytes(whole[-8:], "little")
        index = RecordingIndex()
        index._found["track"] = [[k / 100, None, 0, 0] for k in range(400_000)]
        (tmp_path / "huge.view").write_bytes(whole[:at] + index.packed(at))
        watched = Watched(browser, rest.url)
        page = watched.log_in(rest, OPERATOR)
        watched.visit("/games")
        page.get_by_label("Open a recording from a file").set_input_files(tmp_path / "huge.view")
        page.wait_for_function("() => Number(document.querySelector('canvas.moving')?.dataset.step) > 2")
        expect(page.get_by_role("img", name="Lead in net worth")).to_be_visible()
        watched.close()


@pytest.mark.skipif(not ConsoleSite().build, reason="the console is not built: make console")
def test_a_moment_of_a_recording_is_sent_by_its_address(redis_client: redis.Redis, redis_url: str, tmp_path: Path
                                                        ) -> None:
    with live(redis_url, blobs=recorded(tmp_path)) as rest, chromium() as browser:
        watched = Watched(browser, rest.url)
        page = watched.log_in(rest, OPERATOR)
        watched.visit("/games/replay/version-3?t=-20.5")
        expect(page.locator(".clock")).to_contain_text("-0:20")
        expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()  # it waits there
        page.locator(".scores .dire .pick").first.click()
        expect(page.locator(".beside")).to_contain_text("tower1 mid")  # visible, and soon hidden again
        page.get_by_role("button", name="+15 s").click()
        expect(page.locator(".clock")).to_contain_text("-0:05")
        page.get_by_label("Speed").select_option("0.25")  # it plays little before the next click
        page.get_by_role("button", name="Play", exact=True).click()
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
        again = page.url
        moment = float(parse_qs(urlsplit(again).query)["t"][0])
        assert -6.0 < moment < 0.0
        page.reload()
        expect(page.locator(".clock")).to_contain_text(f"-0:{int(-moment):02d}")
        assert page.url == again
        watched.close()
