"""Scores with their intervals, and the choice of tests for a mutant."""

import pytest

pytest.importorskip("cosmic_ray", reason="optional extra mutations")

from tools.mutations.campaign import Outcome, Verdict, within_budget
from tools.mutations.coverage_map import RecordedTest, covering_tests
from tools.mutations.modules import Target
from tools.mutations.mutants import Mutant
from tools.mutations.report import make_row, score_table, wilson_interval

TARGET = Target("m", "a.py", "test_a.py", ("test_a.py",), ("a.py",))
SOURCE = '''
LIMIT = 3

class Counter:
    step = 1

    def add(self, n=2):
        if (n >
                LIMIT):
            return 0
        return n
'''


def outcome(verdict: Verdict, by_own_test: bool = False) -> Outcome:
    return Outcome(TARGET, Mutant("a.py", 1, "", "AddNot", "x", "y", ""), verdict, "", by_own_test)


def recorded(name: str, seconds: float, *lines: int, file: str = "test_a.py") -> RecordedTest:
    return RecordedTest(name, file, seconds, {"a.py": frozenset(lines)} if lines else {})


def test_score_counts_timeouts_and_leaves_out_equivalent_mutants() -> None:
    outcomes = [outcome("killed", True), outcome("killed"), outcome("timeout"), outcome("survived"),
                outcome("equivalent")]
    row = make_row("a.py", outcomes)
    assert (row.mutants, row.killed, row.by_own_test, row.timeouts, row.survived, row.equivalent) == (5, 2, 1, 1, 1, 1)
    assert row.score == 0.75
    assert "| a.py | 5 | 2 | 1 | 1 | 1 | 1 | 75 % (30 to 95) |" in score_table(outcomes)
    assert make_row("a.py", [outcome("equivalent")]).score is None


@pytest.mark.parametrize(("wins", "games", "low", "high"), [
    (95, 100, 0.8882, 0.9785), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (0, 0, 0.0, 1.0)])
def test_wilson_interval(wins: int, games: int, low: float, high: float) -> None:
    assert wilson_interval(wins, games) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize(("line", "names"), [
    (2, "abc"), (5, "abc"),  # run on import: all tests that execute something in the file
    (7, "ab"),  # a default value: the tests that run the function
    (8, "ab"), (9, "ab"), (10, "a"), (11, "b")])
def test_tests_that_execute_the_statement_are_chosen(line: int, names: str) -> None:
    tests = [recorded("a", 1, 8, 9, 10), recorded("b", 1, 9, 11), recorded("c", 1, 3), recorded("d", 1)]
    assert "".join(test.name for test in covering_tests(tests, "a.py", SOURCE, line)) == names


def test_code_that_nothing_executes_has_no_tests() -> None:
    assert covering_tests([recorded("b", 1, 8, 11)], "a.py", SOURCE, 10) == []


def test_fastest_tests_fit_the_budget_and_files_stay_together() -> None:
    tests = [recorded("slow", 9, 1, file="x"), recorded("b1", 2, 1, file="b"), recorded("a1", 1, 1, file="a"),
             recorded("b2", 3, 1, file="b")]
    assert [test.name for test in within_budget(tests, 6.0)] == ["a1", "b1", "b2"]
    assert [test.name for test in within_budget(tests, 0.5)] == ["a1"]
    assert [test.name for test in within_budget(tests, 15.0)] == ["a1", "b1", "b2", "slow"]
    assert within_budget([], 1.0) == []
