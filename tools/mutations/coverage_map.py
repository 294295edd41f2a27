"""Map from lines to the tests that execute them, recorded once for each test file, in build/mutations/coverage."""

import ast
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.mutations.tree_copy import TreeCopy

RECORD_SECONDS = 1800


@dataclass(frozen=True, slots=True)
class RecordedTest:
    """A passing test: its node id, file, duration and the lines that it executes, by source file."""

    name: str
    file: str
    seconds: float
    lines: dict[str, frozenset[int]]


def record_tests(copy: TreeCopy, folder: Path, test_file: str, sources: list[str]) -> list[RecordedTest]:
    """Return the tests of a file that pass. Run them unless ``folder`` has their result for these sources.

    A result is stored by the text of the test file and the names of the sources. It holds while these do not change.
    """
    names = hashlib.sha256("\n".join(sources).encode()).hexdigest()[:8]
    stored = folder / f"{Path(test_file).stem}-{names}-{_digest(copy.path, test_file)}.json"
    record: dict[str, Any] = json.loads(stored.read_text(encoding="utf-8")) if stored.exists() else {"sources": {}}
    digests = {source: _digest(copy.path, source) for source in sources}
    if digests != record["sources"]:
        answer = copy.run(files=[test_file], record=sources, timeout=RECORD_SECONDS)
        record = {"sources": digests, "results": answer.get("results", {})}
        if "results" in answer:
            folder.mkdir(parents=True, exist_ok=True)
            stored.write_text(json.dumps(record), encoding="utf-8")
        if answer["outcome"] not in ("passed", "empty"):
            print(f"{test_file}: {answer['outcome']} without a mutant, failing tests are not used: {answer['reason']}",
                  flush=True)
    return [RecordedTest(name, test_file, result["seconds"],
                         {source: frozenset(lines) for source, lines in result["lines"].items()})
            for name, result in record["results"].items() if result["passed"]]


def _digest(root: Path, name: str) -> str:
    return hashlib.sha256(name.encode() + b"\n" + (root / name).read_bytes()).hexdigest()[:16]


def covering_tests(tests: list[RecordedTest], source: str, text: str, line: int, own_test: str | None = None
                   ) -> list[RecordedTest]:
    """Return the tests that execute the statement at a line.

    No test executes a statement that runs on import. For a function's default values and decorators these are the tests
    that execute the function, for others those of the file's own test and all that execute something in the file.
    """
    here = [test for test in tests if test.lines.get(source)]
    span, runs_on_import = _executed_with(text, line)
    found = [test for test in here if test.lines[source] & span]
    if found or not runs_on_import:
        return found
    return here + [test for test in tests if test.file == own_test and not test.lines.get(source)]


def _executed_with(text: str, line: int) -> tuple[frozenset[int], bool]:
    """Return the lines of the statement at a line, the body for that of a function, and whether it runs on import."""
    around = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)
              and _first_line(node) <= line <= (node.end_lineno or node.lineno)]
    if not around:
        return frozenset(), True
    around.sort(key=lambda node: (node.end_lineno or node.lineno) - node.lineno)
    statement, outer = around[0], around[1:]
    if any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in outer):
        return frozenset(range(_first_line(statement), _header_end(statement) + 1)), False
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        return frozenset(range(statement.body[0].lineno, (statement.end_lineno or 0) + 1)), True
    return frozenset(), True


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _header_end(node: ast.stmt) -> int:
    """Return the last line of a statement without its body."""
    body: list[ast.stmt] = getattr(node, "body", [])
    return max(node.lineno, body[0].lineno - 1) if body else (node.end_lineno or node.lineno)
