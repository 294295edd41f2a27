"""Run of the tests against sampled mutants, on several copies of the tree."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from tools.mutations.coverage_map import RecordedTest, covering_tests, record_tests
from tools.mutations.equivalent import EquivalentMutants
from tools.mutations.modules import Selection, Target
from tools.mutations.mutants import Mutant, sample_mutants
from tools.mutations.tree_copy import TreeCopy

Verdict = Literal["killed", "survived", "timeout", "equivalent"]
Item = TypeVar("Item")
Result = TypeVar("Result")
TIMEOUT_FACTOR = 5.0
"""A mutant's tests are stopped after this multiple of their duration without it, plus ``timeout_seconds``."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of the tests of a mutant."""

    target: Target
    mutant: Mutant
    verdict: Verdict
    reason: str
    by_own_test: bool = False


@dataclass(slots=True)
class Campaign:
    """Mutation tests of the selected targets.

    ``sample`` is the number of mutants of each source file, None for all. ``budget_seconds`` limits the tests of one
    mutant by their duration without it; the fastest are run.
    """

    root: Path
    selection: Selection
    sample: int | None
    seed: int
    workers: int
    budget_seconds: float
    timeout_seconds: float
    equivalent: EquivalentMutants
    report: Callable[[Outcome], None] = lambda outcome: None
    _all_copies: list[TreeCopy] = field(default_factory=list)
    _copies: "queue.Queue[TreeCopy]" = field(default_factory=queue.Queue)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> list[Outcome]:
        """Test the mutants and return the outcomes by source file and line."""
        with ExitStack() as stack:
            for _ in range(self.workers):
                copy = TreeCopy(self.root, self.selection.preload, self.selection.plugins)
                self._all_copies.append(stack.enter_context(copy))
                self._copies.put(copy)
            recorded = self._record()
            mutants = [pair for pairs in self._on_copies(self._sample, self.selection.targets) for pair in pairs]
            outcomes = self._on_copies(lambda copy, pair: self._test(copy, *pair, recorded), mutants)
        return sorted(outcomes, key=lambda outcome: (outcome.target.source, outcome.mutant.line))

    def _on_copies(self, work: Callable[[TreeCopy, Item], Result], items: list[Item]) -> list[Result]:
        def on_copy(item: Item) -> Result:
            copy = self._copies.get()
            try:
                return work(copy, item)
            finally:
                self._copies.put(copy)

        with ThreadPoolExecutor(self.workers) as pool:
            try:
                return list(pool.map(on_copy, items))
            except BaseException:
                for copy in self._all_copies:
                    copy.stop()  # the pool waits for jobs that run
                raise

    def _sample(self, copy: TreeCopy, target: Target) -> list[tuple[Target, Mutant]]:
        text = (copy.path / target.source).read_text(encoding="utf-8")
        return [(target, mutant) for mutant in sample_mutants(target.source, text, self.sample, self.seed)]

    def _record(self) -> dict[str, list[RecordedTest]]:
        """Return the recorded tests of each module."""
        jobs = []
        for module in dict.fromkeys(target.module for target in self.selection.targets):
            of_module = [target for target in self.selection.targets if target.module == module]
            tests = {test for target in of_module for test in (*target.tests, *filter(None, [target.own_test]))}
            jobs += [(module, test, list(of_module[0].siblings)) for test in sorted(tests)]
        folder = self.root / "build" / "mutations" / "coverage"
        found = self._on_copies(lambda copy, job: record_tests(copy, folder, job[1], job[2]), jobs)
        recorded: dict[str, list[RecordedTest]] = {}
        for (module, _, _), tests_of_file in zip(jobs, found, strict=True):
            recorded.setdefault(module, []).extend(tests_of_file)
        return recorded

    def _test(self, copy: TreeCopy, target: Target, mutant: Mutant,
              recorded: dict[str, list[RecordedTest]]) -> Outcome:
        if reason := self.equivalent.reason(mutant.key):
            outcome = Outcome(target, mutant, "equivalent", reason)
        else:
            text = (copy.path / target.source).read_text(encoding="utf-8")
            copy.write(target.source, mutant.text)
            try:
                tests = covering_tests(recorded.get(target.module, []), target.source, text, mutant.line,
                                       target.own_test)
                outcome = self._run(copy, target, mutant, tests)
            finally:
                copy.write(target.source, text)
        with self._lock:
            self.report(outcome)
        return outcome

    def _run(self, copy: TreeCopy, target: Target, mutant: Mutant, tests: list[RecordedTest]) -> Outcome:
        """Run the tests of the target's own file, then the others, until one fails."""
        if not tests:
            return Outcome(target, mutant, "survived", "no test executes this line")
        own = [test for test in tests if test.file == target.own_test]
        others = [test for test in tests if test.file != target.own_test]
        for group, is_own in ((own, True), (within_budget(others, self.budget_seconds), False)):
            if not group:
                continue
            seconds = sum(test.seconds for test in group)
            answer = copy.run(files=list(dict.fromkeys(test.file for test in group)),
                              tests=[test.name for test in group],
                              timeout=self.timeout_seconds + TIMEOUT_FACTOR * seconds)
            if answer["outcome"] == "timeout":
                return Outcome(target, mutant, "timeout", answer["reason"], is_own)
            if answer["outcome"] == "failed":
                return Outcome(target, mutant, "killed", answer["reason"], is_own)
        return Outcome(target, mutant, "survived", f"{len(tests)} tests execute this line")


def within_budget(tests: list[RecordedTest], seconds: float) -> list[RecordedTest]:
    """Return the fastest tests that together take at most that long, at least one, ordered by file."""
    chosen: list[RecordedTest] = []
    spent = 0.0
    for test in sorted(tests, key=lambda test: test.seconds):
        spent += test.seconds
        if chosen and spent > seconds:
            break
        chosen.append(test)
    totals: dict[str, float] = {}
    for test in chosen:
        totals[test.file] = totals.get(test.file, 0.0) + test.seconds
    return sorted(chosen, key=lambda test: (totals[test.file], test.file))
