"""The console's static files. Nothing is loaded from other hosts, and there are no inline scripts.

Vite builds them from console/ into built/ (`make console`); images and wheels contain them. They are read once, when
the application is created, so no part of a request becomes a path. Addresses in the page begin with the path at which a
reverse proxy serves the console; the scripts read that path from the page.
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
# First segments of the pages' paths, as in console/src/pages/index.ts; each page routes the paths below it.
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
IMMUTABLE = "public, max-age=31536000, immutable"  # for files named by the hash of their contents
REVALIDATE = "no-cache"
PAGE = "index.html"
COMPRESSIBLE = ("text/", "application/json", "image/svg+xml")
NOT_BUILT_PAGE = b"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Five</title></head><body>
<h1>The console is not built</h1><p>This controller runs from a source tree without built pages.
Run <code>make console</code>, then restart the run. Images and wheels contain the pages.</p>
<p>The REST API is available: <a href="/openapi.json">/openapi.json</a>, docs/api.md.</p></body></html>
"""


@dataclass(frozen=True)
class StaticFile:
    """A built file: media type, bytes, gzip-compressed bytes where that is smaller, and entity tag."""

    media_type: str
    body: bytes
    gzipped: bytes | None
    tag: str

    @classmethod
    def of(cls, name: str, body: bytes) -> "StaticFile":
        """Return the file with that name and contents."""
        media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
        text = media_type.startswith(COMPRESSIBLE)
        gzipped = gzip.compress(body, mtime=0) if text and len(body) > 1024 else None
        return cls(f"{media_type}; charset=utf-8" if text else media_type, body, gzipped,
                   f'"{hashlib.sha256(body).hexdigest()[:32]}"')


class ConsoleSite:
    """The built console, served below ``path_prefix``. ``build`` is the build's name, or '' if it is not built."""

    def __init__(self, folder: Path = BUILT, path_prefix: str = "") -> None:
        self.files = {path.relative_to(folder).as_posix(): StaticFile.of(path.name, path.read_bytes())
                      for path in sorted(folder.rglob("*")) if path.is_file()} if folder.is_dir() else {}
        if PAGE in self.files:
            self.files[PAGE] = StaticFile.of(PAGE, _with_prefix(self.files[PAGE].body, path_prefix.encode()))
        self._not_built = NOT_BUILT_PAGE.replace(b'href="/', b'href="%s/' % path_prefix.encode())
        named = self.files.get("build.json")
        self.build = "" if named is None else str(json.loads(named.body)["build"])

    def answer(self, name: str, request: Request) -> Response:
        """Return the file with that name, or a page that explains how to build the console."""
        file = self.files.get(name)
        if file is None:
            return Response(self._not_built, 503, {**HEADERS, "Cache-Control": REVALIDATE}, "text/html; charset=utf-8")
        headers = {**HEADERS, "ETag": file.tag, "Vary": "Accept-Encoding",
                   "Cache-Control": IMMUTABLE if name.startswith("assets/") else REVALIDATE}
        if request.headers.get("if-none-match") == file.tag:
            return Response(None, 304, headers)
        if file.gzipped is not None and "gzip" in request.headers.get("accept-encoding", ""):
            return Response(file.gzipped, 200, {**headers, "Content-Encoding": "gzip"}, file.media_type)
        return Response(file.body, 200, headers, file.media_type)


def _with_prefix(page: bytes, prefix: bytes) -> bytes:
    """Return the page with absolute addresses below the prefix, which pages at every depth share."""
    page = page.replace(b'name="path-prefix" content=""', b'name="path-prefix" content="%s"' % prefix)
    return page.replace(b'src="./', b'src="%s/' % prefix).replace(b'href="./', b'href="%s/' % prefix)


def install(app: FastAPI, site: ConsoleSite) -> None:
    """Add a route for each file, and serve the page at every address of a console page."""
    def serving(name: str) -> Callable[[Request], Response]:
        return lambda request: site.answer(name, request)

    for name in site.files:
        if name != PAGE:
            app.router.routes.append(Route(f"/{name}", serving(name), methods=["GET"]))
    for path in ("/", *(f"/{page}" for page in PAGES), *(f"/{page}/{{below:path}}" for page in PAGES)):
        app.router.routes.append(Route(path, serving(PAGE), methods=["GET"]))
