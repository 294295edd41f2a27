"""Names in pages and messages: files, links, anchors, tests, `five` commands, make targets, Python modules."""

import argparse
import ast
import importlib.util
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from five.cli.commands import parser
from tests.repository import ROOT

# Folders whose files can be named; what a run or a build makes (runs/, build/) is not there to be found.
FOLDERS = "libs|services|charts|docs|configs|deploy|k8s|tests|protos|tools|benchmarks|console|core|\\.ci"
PATH = re.compile(rf"(?<![\w/.$-])((?:{FOLDERS})/[\w./*-]*[\w*/])")
# Build outputs, and names of Deployments.
MADE = re.compile(r"services/controller/console/built|k8s/base/\.?five\.yaml|deploy/five-")
TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^(```|~~~).*?^\1", re.M | re.S)
INLINE = re.compile(r"`([^`\n]+)`")
# At the beginning of a line of code, or of a command in one.
BEGIN = r"(?:^|\$\(|[;&|] )\s*(?:\$ )?"
COMMAND = re.compile(BEGIN + r"(?:\.venv/bin/)?five ([a-z][^\n#|;&)]*)", re.M)
MAKE = re.compile(BEGIN + r"make ([a-z][\w-]*)(?![\w=])", re.M)
MODULE = re.compile(r"python3? -m ([a-z]\w*(?:\.\w+)*)")
SCRIPT = re.compile(r"(?:python3?|bash|sh) ([\w./-]+\.(?:py|sh))\b")
ELSEWHERE = {"pytest", "pip", "http.server", "json.tool", "venv", "zipfile"}  # modules that are not the project's


def slugs(text: str) -> set[str]:
    """Return the anchors that GitHub gives a page's headings."""
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} +(.+?)\s*$", CODE.sub("", text), re.M):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        free = next(s for s in (slug, *(f"{slug}-{n}" for n in range(1, 99))) if s not in found)
        found.add(free)
    return found


def wrong_links(page: Path) -> Iterator[str]:
    """Yield the links of a Markdown page to missing files or anchors."""
    text = page.read_text()
    for match in LINK.finditer(CODE.sub("", text)):
        target = match[1] or match[2]
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        other = (page.parent / name).resolve() if name else page
        if not other.exists():
            yield f"links to {target}, and there is no {name}"
        elif anchor and other.suffix == ".md" and anchor not in slugs(other.read_text()):
            yield f"links to {target}, and {other.name} has no such heading"


def code_of(page: str) -> str:
    """Return the code of a Markdown page, one block or inline code a line."""
    blocks = "\n".join(match[0] for match in CODE.finditer(page))
    return blocks + "\n" + "\n".join(match[1] for match in INLINE.finditer(CODE.sub("", page)))


def quoted(text: str) -> str:
    """Return the texts between single or double backquotes in a message or comment, one a line."""
    return "\n".join(match[1] or match[2] for match in re.finditer(r"``([^`\n]+)``|`([^`\n]+)`", text))


def strings_of(source: str) -> str:
    """Return every string of a Python module: messages and docstrings. A formatted part becomes ``X``."""
    texts = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.append(node.value)
        elif isinstance(node, ast.JoinedStr):
            texts.append("".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values))
    return "\n".join(texts)


def wrong_names(text: str, code: str, home: Path = ROOT) -> Iterator[str]:
    """Yield the missing files and tests of ``text``, and the missing commands, targets and modules of ``code``. Paths
    are relative to the repository or to ``home``."""
    for path in PATH.findall(text):
        name = path.rstrip("/.").replace("/*", "/**/*")
        if not MADE.match(name) and not any(there(root, name) for root in (ROOT, home, ROOT / "libs/dota")):
            yield f"names {path}, which is not there"
    for file, test in TEST.findall(text):
        if (ROOT / file).exists() and not re.search(rf"^(?:async )?def {test}\(", (ROOT / file).read_text(), re.M):
            yield f"names {file}::{test}, which is not there"
    for words in COMMAND.findall(code):
        yield from wrong_command(words)
    for name in MAKE.findall(code):
        if name not in targets():
            yield f"says make {name}, an unknown target"
    yield from wrong_scripts(code, home)
    for module in MODULE.findall(code):
        if module not in ELSEWHERE and not module.endswith(".X") and not has_module(module):
            yield f"says python -m {module}, an unknown module"


@cache
def there(root: Path, name: str) -> bool:
    return next(root.glob(name), None) is not None if "*" in name else (root / name).exists()


def wrong_scripts(code: str, home: Path = ROOT) -> Iterator[str]:
    """Yield the scripts that ``code`` runs and that do not exist."""
    for script in SCRIPT.findall(code):
        if not any((root / script).exists() for root in (ROOT, home)):
            yield f"runs {script}, which is not there"


def wrong_command(words: str) -> Iterator[str]:
    """Yield the unknown commands and options of ``five WORDS``."""
    at, said = parser_of(), []
    for word in words.split():
        word = word.strip("`'\",.:()")
        below = [a for a in at._actions if isinstance(a, argparse._SubParsersAction)]
        if word.startswith("--"):
            if word.partition("=")[0] not in at._option_string_actions:
                yield f"says five {' '.join([*said, word])}, and there is no such option"
        elif below and word in below[0].choices:
            at = below[0].choices[word]
            said.append(word)
        elif below and not said:
            if re.fullmatch(r"[a-z][a-z-]+", word):
                yield f"says five {word}, an unknown command"
            return


@cache
def parser_of() -> argparse.ArgumentParser:
    return parser()


@cache
def targets() -> set[str]:
    return set(re.findall(r"^([\w-]+):(?!=)", (ROOT / "Makefile").read_text(), re.M))


def has_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False
