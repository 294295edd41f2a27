"""Hooks of the documentation site (mkdocs.yml): pages outside docs/, and links between pages and the repository."""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
# Page of the site -> its file in the repository.
OUTSIDE = {
    "index.md": "README.md",
    "chart.md": "charts/README.md",
    "node-pools.md": "k8s/README.md",
    "environment.md": "libs/dota/README.md",
    "game-core.md": "libs/dota/core/README.md",
    "data-schema.md": "libs/dota/data/SCHEMA.md",
    "data-sources.md": "libs/dota/data/SOURCES.md",
    "benchmark-scripts.md": "benchmarks/README.md",
    "console-source.md": "console/README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}
_PAGE_OF = {source: page for page, source in OUTSIDE.items()}
_FENCED = re.compile(r"(^(?:```|~~~).*?^(?:```|~~~))", re.M | re.S)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
# An asset that a built page would load from another host.
_REMOTE = re.compile(rb'<(?:script|img|iframe)[^>]+src="?(?:https?:)?//|<link[^>]+stylesheet[^>]+href="?(?:https?:)?//')


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages outside docs/ and the pictures that they show."""
    for page, source in OUTSIDE.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links at pages of the site; turn links to other files of the repository into text."""
    here = page.file.src_uri
    source = OUTSIDE.get(here, posixpath.join("docs", here))

    def rewrite(match: re.Match[str]) -> str:
        picture, text, target = match.groups()
        name, _, anchor = target.partition("#")
        if not name or re.match(r"[a-z]+:", target):
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), name))
        there = _PAGE_OF.get(path, path.removeprefix("docs/"))
        if files.get_file_from_path(there):
            relative = posixpath.relpath(there, posixpath.dirname(here) or ".")
            return f"{picture}[{text}]({relative}{'#' + anchor if anchor else ''})"
        return text if not picture and (ROOT / path).exists() else match[0]

    return "".join(part if _FENCED.match(part) else _LINK.sub(rewrite, part) for part in _FENCED.split(markdown))


def on_post_build(config: MkDocsConfig) -> None:
    """Raise PluginError if a built page loads a script, picture, frame or style from another host."""
    for path in sorted(Path(config.site_dir).rglob("*.html")):
        if found := _REMOTE.search(path.read_bytes()):
            raise PluginError(f"{path}: loads from the network: {found[0].decode()!r}; keep the asset in docs/")
