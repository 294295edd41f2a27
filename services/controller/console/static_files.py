"""The console's files, as the controller serves them: nothing is loaded from elsewhere, and no script stands inline.

Vite builds them from console/ into built/ beside this file (`make console`; in images and wheels they are there). They
are read once, when the application is made, so that nothing of a request ever becomes a path.
"""

import gzip
import hashlib
import json
import mimetypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fastapi import FastAPI, Request, Response
from starlette.routing import Route

BUILT = Path(__file__).parent / "built"
# First parts of the pages' addresses, as console/src/pages/index.ts names them; what is below is the page's own.
PAGES: tuple[str, ...] = ("games", "steering", "league", "events", "play", "draft", "docs")
POLICY = "; ".join((
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data: blob:", "connect-src 'self'",
    "worker-src 'self'", "font-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"))
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
FOR_GOOD = "public, max-age=31536000, immutable"  # of files whose names are hashes of their contents
LOOK_AGAIN = "no-cache"
WORTH_PACKING = ("text/", "application/json", "image/svg+xml")
MISSING = b"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Five</title></head><body>
<h1>The console is not built</h1><p>This controller runs from a source tree in which nobody has built its pages.
<code>make console</code> builds them in a minute; then start the run again. Images and wheels carry them.</p>
<p>The REST API is there: <a href="/openapi.json">/openapi.json</a>, docs/api.md.</p></body></html>
"""


@dataclass(frozen=True)
class File:
    """One built file: its type, its bytes, the same packed by gzip where that pays, and the tag of its contents."""

    media_type: str
    body: bytes
    packed: bytes | None
    tag: str

    @classmethod
    def of(cls, name: str, body: bytes) -> "File":
        """The file of that name and contents."""
        media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
        text = media_type.startswith(WORTH_PACKING)
        packed = gzip.compress(body, mtime=0) if text and len(body) > 1024 else None
        return cls(f"{media_type}; charset=utf-8" if text else media_type, body, packed,
                   f'"{hashlib.sha256(body).hexdigest()[:32]}"')


class Site:
    """The built console. ``build`` is its name, '' when it is not built."""

    def __init__(self, folder: Path = BUILT) -> None:
        self.files = {path.relative_to(folder).as_posix(): File.of(path.name, path.read_bytes())
                      for path in sorted(folder.rglob("*")) if path.is_file()} if folder.is_dir() else {}
        named = self.files.get("build.json")
        self.build = "" if named is None else str(json.loads(named.body)["build"])

    def answer(self, name: str, request: Request) -> Response:
        """The file of that name; for index.html a page that says how to build one, where there is none."""
        file = self.files.get(name)
        if file is None:
            return Response(MISSING, 503, {**HEADERS, "Cache-Control": LOOK_AGAIN}, "text/html; charset=utf-8")
        headers = {**HEADERS, "ETag": file.tag, "Vary": "Accept-Encoding",
                   "Cache-Control": FOR_GOOD if name.startswith("assets/") else LOOK_AGAIN}
        if request.headers.get("if-none-match") == file.tag:
            return Response(None, 304, headers)
        if file.packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
            return Response(file.packed, 200, {**headers, "Content-Encoding": "gzip"}, file.media_type)
        return Response(file.body, 200, headers, file.media_type)


def install(app: FastAPI, site: Site) -> None:
    """Serves the site: each of its files under its own address, and the page for every address of a page."""
    def serving(name: str) -> Callable[[Request], Response]:
        return lambda request: site.answer(name, request)

    for name in site.files:
        if name != "index.html":
            app.router.routes.append(Route(f"/{name}", serving(name), methods=["GET"]))
    for path in ("/", *(f"/{page}" for page in PAGES), *(f"/{page}/{{below:path}}" for page in PAGES)):
        app.router.routes.append(Route(path, serving("index.html"), methods=["GET"]))
