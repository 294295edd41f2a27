"""HTML page of a report: data, the console's script and style in one file.

The content security policy names script and style by their hashes. A run's data is JSON, which no browser executes;
the script shows it as text. Without the script (``make console`` was not run) or with scripts disabled, the page
shows figures and events as plain tables.
"""

import base64
import hashlib
import html
import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from five.services.controller.console.static_files import BUILT

PROGRAM = BUILT / "report"
NO_FILM = "No recording yet: each rated version makes one."
NO_CONSOLE = "Charts and the newest film need the console's pages: run make console, then five report."
PLAIN_EVENTS = 100  # rows of the plain table
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{name}</title>
<style>{style}</style>
</head>
<body>
<div id="page"><main><h1>{name}</h1><p>{note}</p><dl class="facts">{facts}</dl>
<h2>Events</h2><table><tbody>{events}</tbody></table></main></div>
<script type="application/json" id="run">{data}</script>
<script type="text/plain" id="film">{film}</script>
<script>{script}</script>
</body>
</html>
"""


class Film(NamedTuple):
    """A recording's name and bytes (docs/replays.md)."""

    name: str
    data: bytes


def page(data: Mapping[str, Any], film: Film | None = None, program: Path = PROGRAM) -> str:
    """Return the page of a report. ``data``: JSON values of console/src/report/data.ts without film and note."""
    script, style = (_text(program / name) for name in ("report.js", "report.css"))
    note = NO_CONSOLE if not script else "" if film is not None else NO_FILM
    shown = film if script else None
    tree = {**data, "note": note, "film": None if shown is None else {"name": shown.name, "bytes": len(shown.data)}}
    facts = "".join(f"<div><dt>{_escape(name)}</dt><dd>{_escape(value)}</dd></div>" for name, value in data["facts"])
    events = "".join(
        f"<tr><td>{_escape(time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(e['at'])))}</td>"
        f"<td>{_escape(e['who'])}</td><td>{_escape(e['what'])}</td><td>{_escape(e['details'])}</td></tr>"
        for e in data["events"][:PLAIN_EVENTS])
    policy = "; ".join((
        "default-src 'none'", f"script-src '{digest(script)}'", f"style-src '{digest(style)}'", "img-src data: blob:",
        "base-uri 'none'", "form-action 'none'"))
    return PAGE.format(
        policy=policy, name=_escape(data["name"]), style=style, script=script, note=_escape(note), facts=facts,
        events=events, data=_escape_json(json.dumps(tree, allow_nan=False)),
        film="" if shown is None else base64.b64encode(shown.data).decode())


def rebuild_page(text: str, program: Path = PROGRAM) -> str:
    """Return a report's page rendered again from its data with today's script; the same page if there is no script,
    because a plain page would lose charts and film. Raises ValueError for another page."""
    blocks = dict(re.findall(r'<script type="[a-z/]+" id="(run|film)">([^<]*)</script>', text))
    try:
        data = json.loads(blocks["run"])
        kept, encoded = data.pop("film"), blocks["film"]
        if not _text(program / "report.js"):
            return text
        return page(data, Film(kept["name"], base64.b64decode(encoded)) if kept and encoded else None, program)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the page is not a report of five train ({error!r})") from None


def digest(text: str) -> str:
    """Return the hash of an inline script or style for a content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _text(path: Path) -> str:
    """Return a built file, escaped so that nothing in it ends its element; '' if it is missing."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    return text.replace("</script", "<\\/script").replace("</style", "<\\/style").strip()


def _escape_json(text: str) -> str:
    """Return JSON escaped so that it ends no element and begins no comment."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _escape(value: Any) -> str:
    return html.escape(str(value))
