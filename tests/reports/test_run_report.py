import json
import re
from base64 import b64decode, b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from five.ablation.plots import Plot, PlotLine, render_svg
from five.cli.evaluate import write_report
from five.cli.main import main
from five.local.run_folder import RunFolder, RunUnavailable
from five.reports.html_page import Film, page, rebuild_page
from five.reports.run_report import RecordHistory, RunRecords, curves, headline, newest_film, render, save_records
from five.services.controller.games.recordings import RecordingReader
from rapid.blobs import BlobMissing, BlobStore
from rapid.store.series import Record
from tests.repository import ROOT

DATA = {"name": "trial", "made": 1000.0, "facts": [["version", "7"]], "curves": {}, "marks": [], "events": []}


def records(n: int, **values: float) -> list[Record]:
    return [Record(f"{i}-0", 1000.0 + 10 * i, {k: v * i for k, v in values.items()}) for i in range(n)]


def run(events: Any = (), **changes: list[Record]) -> RunRecords:
    parts: dict[str, list[Record]] = {"versions": [], "games": [], "ratings": []} | changes
    versions, games, ratings = (RecordHistory(parts[kind]) for kind in ("versions", "games", "ratings"))
    return RunRecords("trial", 1000.0, versions, games, ratings, list(events))


def block(text: str, identity: str) -> str:
    """Return the content of one of the page's data blocks."""
    found = re.search(rf'<script type="[a-z/]+" id="{identity}">([^<]*)</script>', text)
    assert found, identity
    return found[1]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "report.js").write_text("const end = '</script><b>';\n")
    (tmp_path / "report.css").write_text("p { color: red }\n")
    return tmp_path


def test_policy_names_script_and_style_by_hash(program: Path) -> None:
    text = page(DATA, Film("version-7", b"\x00\xffFILM"), program)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy and policy[1].startswith("default-src 'none'; ")
    scripts, styles = re.findall(r"<script>(.*?)</script>", text, re.S), re.findall(r"<style>(.*?)</style>", text, re.S)
    assert len(scripts) == len(styles) == 1 and "<\\/script><b>" in scripts[0]
    for kind, (inline,) in (("script", scripts), ("style", styles)):
        assert f"{kind}-src 'sha256-{b64encode(sha256(inline.encode()).digest()).decode()}'" in policy[1]
    assert not re.search(r"https?://|\bsrc=|\bhref=", text)
    assert b64decode(block(text, "film")) == b"\x00\xffFILM"
    assert json.loads(block(text, "run"))["film"] == {"name": "version-7", "bytes": 6}


def test_run_data_cannot_end_its_element(program: Path) -> None:
    hostile = "</script><script>alert(1)</script><!--"
    events = [{"at": 1.0, "who": "<b>", "what": hostile, "details": {"a": "&"}, "id": "1-0"}]
    text = page({**DATA, "name": hostile, "events": events, "facts": [[hostile, hostile]]}, None, program)
    assert text.count("<script") == 3 and "<b>" not in text.split("<script>")[0] and "alert(1)</script>" not in text
    assert json.loads(block(text, "run"))["name"] == hostile


def test_page_without_script_shows_figures_and_events(tmp_path: Path) -> None:
    text = page({**DATA, "events": [{"at": 1.0, "who": "ada", "what": "run.pausing", "details": {}, "id": "1-0"}]},
                Film("version-7", b"film"), tmp_path)
    assert "make console" in text and "<dt>version</dt><dd>7</dd>" in text and "run.pausing" in text
    assert block(text, "film") == "" and json.loads(block(text, "run"))["film"] is None


def test_page_is_rebuilt_with_a_newer_script(program: Path, tmp_path: Path) -> None:
    hostile = {**DATA, "name": "<b> &amp; </script>", "events": [{"at": 1.0, "who": "ada", "what": "a", "details": {}}]}
    plain = page(hostile, None, tmp_path / "absent")
    assert "make console" in plain and rebuild_page(plain, program) == page(hostile, None, program)
    filmed = page(hostile, Film("version-7", b"film"), program)
    assert rebuild_page(filmed, program) == rebuild_page(filmed, tmp_path / "absent") == filmed  # the film is kept
    with pytest.raises(ValueError, match="not a report"):
        rebuild_page("<p>another page</p>", program)


def test_report_of_an_ended_run_is_rebuilt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = RunFolder(tmp_path)
    with pytest.raises(RunUnavailable, match="is not running"):
        write_report(folder)
    folder.report.write_text(page(DATA, None, tmp_path / "absent"))
    assert write_report(folder) == 0 and str(folder.report) in capsys.readouterr().out
    assert folder.report.read_text() == page(DATA) and not list(tmp_path.glob("*.partial"))
    folder.report.write_text("cut off")
    with pytest.raises(RuntimeError, match=r"report.html: the page is not a report"):
        write_report(folder)
    assert folder.report.read_text() == "cut off"


def test_an_empty_run_renders() -> None:
    told = json.loads(block(render(run(), now=5.0), "run"))
    assert told["curves"]["versions"] == {"total": 0, "first": None, "last": None, "names": [], "gaps": [], "at": [],
                                          "fields": {}}
    assert told["made"] == 5.0 and told["film"] is None


def test_curves_match_the_console() -> None:
    found = curves(RecordHistory(records(1000, a=3.0)).columns)
    assert len(found["at"]) == 400 and found["total"] == 1000
    assert set(found["fields"]["a"]) == {"mean", "low", "high"} and found["fields"]["a"]["high"][-1] == 2997.0
    short = curves(RecordHistory([Record("1-0", 1000.0, {"a": 1.0, "b": {"c": 2.0}}),
                                  Record("2-0", 1001.0, {"a": float("inf")})]).columns)
    assert short["fields"] == {"a": {"mean": [1.0, None]}, "b/c": {"mean": [2.0, None]}}


def test_newest_film_below_the_size_limit_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blobs = BlobStore(str(tmp_path))
    kept = RecordingReader(lambda: blobs, "trial")
    assert newest_film(kept) is None
    for name, at, size in (("version-1", 1.0, 10), ("version-3", 3.0, 900), ("version-2", 2.0, 20)):
        blobs.put(bytes(size), f"trial/replays/{name}.view")
        blobs.put(json.dumps({"at": at}).encode(), f"trial/replays/{name}.json")
    monkeypatch.setattr("five.reports.run_report.MAX_FILM", 100)
    assert newest_film(kept) == Film("version-2", bytes(20))


def test_unavailable_blob_store_costs_only_the_film(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = RecordingReader(lambda: None, "trial")
    for error in (OSError("away"), BlobMissing("removed meanwhile")):
        monkeypatch.setattr(kept, "read", Mock(side_effect=error))
        monkeypatch.setattr(kept, "all", lambda: [{"name": "version-1", "bytes": 1}])
        assert newest_film(kept) is None


def test_headline_shows_rating_and_win_rates() -> None:
    rating = Record("1-0", 1060.0, {"version": 40, "mu": 31.26, "sigma": 1.5, "win_rates": {"random": 0.97},
                                    "win_intervals": {"random": [0.9, 0.99]}})
    head = dict(headline(run(ratings=[rating])))
    assert head["TrueSkill"] == "31.3 ± 1.5"
    assert head["version 40's score against random"] == "97 % (90 to 99)"


def test_headline_covers_the_newest_records() -> None:
    rated = [Record("1-0", 1030.0, {"version": 1, "mu": 2.0}), Record("2-0", 1060.0, {"version": 2})]
    versions = records(100, version=1, reuse=1.0, hero_steps=100.0)
    head = dict(headline(run(versions=versions, games=records(1500), ratings=rated)))
    assert head["version"] == "99" and head["sample reuse"] == "74.50"  # the median of 50 versions
    assert head["hero-steps received"] == "9,900"
    assert head["games played"] == "1,500" and head["TrueSkill"] == "2.0 ± 0.0" and head["running for"] == "250 min"


def test_records_of_a_short_run_are_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "records.json"
    save_records(run(versions=[*records(3, version=1), Record("9-0", 1060.0, {})]), path)
    assert path.read_text() == json.dumps({"name": "trial", "began": 1000.0, "versions": [
        {"minutes": 10 * i / 60, "version": i} for i in range(3)] + [{"minutes": 1.0}], "ratings": []})


def test_only_the_newest_records_are_written(tmp_path: Path) -> None:
    versions = [Record(f"{i}-0", 1000.0 + 10 * i + 500 * (i > 7), {"version": i, "seconds": 10.0,
                                                                   "hero_steps": 1e3 * i}) for i in range(25_000)]
    path = tmp_path / "records.json"
    save_records(run(versions=versions), path)
    saved = json.loads(path.read_text())
    assert [row["version"] for row in saved["versions"]] == list(range(5000, 25_000))
    assert saved["stopped_seconds"] == 500.0
    older = saved["older"]
    assert [row["version"] for row in older] == list(range(0, 5000, 8)), "at most 1,000 points, 8 versions apart"
    assert older[0] == {"version": 0, "minutes": 0.0, "stopped_seconds": 0.0, "hero_steps": 0.0}
    assert older[1] == {"version": 8, "minutes": 580 / 60, "stopped_seconds": 500.0, "hero_steps": 8000.0}
    assert not list(tmp_path.glob(".*"))


def test_plot_draws_target_and_marks_missing_data() -> None:
    line = PlotLine("a", np.arange(3.0), np.arange(3.0))
    assert "target" in render_svg(Plot("t", "", [line], target=(1.0, "target")))
    assert "no data yet" in render_svg(Plot("t", "", []))


def test_report_is_rendered_from_stored_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (stored,) = (ROOT / "benchmarks/learning").glob("laptop-5v5-*.json")
    copy = tmp_path / stored.name
    copy.write_bytes(stored.read_bytes())
    assert main(["report", "--data", str(copy)]) == 0
    assert "laptop-5v5" in copy.with_suffix(".html").read_text()
    capsys.readouterr()
    copy.write_text("[]")
    assert main(["report", "--data", str(copy)]) == 2
    assert f"five report: {copy}: not the data of a report" in capsys.readouterr().err
    copy.with_suffix(".html").unlink()
    copy.with_suffix(".html").mkdir()  # cannot be replaced
    copy.write_bytes(stored.read_bytes())
    assert main(["report", "--data", str(copy)]) == 2
    assert "not the data of a report" not in capsys.readouterr().err
