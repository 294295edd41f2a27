"""Mutants of a file: what they change, how they are sampled and what identifies them."""

import pytest

pytest.importorskip("cosmic_ray", reason="optional extra mutations")

from tools.mutations.mutants import definition_at, sample_mutants

SOURCE = '''
BASE = 10


class Counter:
    step = 2

    @property
    def total(self) -> int:
        """Return 7."""
        return self.count * self.step + BASE

    def add(self, count):
        if count > 5 and not self.closed:
            self.count -= -count


def outer():
    def inner():
        return 3
    return inner
'''


def test_all_mutants_are_valid_and_differ() -> None:
    mutants = sample_mutants("a.py", SOURCE, None, 1)
    assert len({mutant.text for mutant in mutants}) == len(mutants) >= 20
    for mutant in mutants:
        compile(mutant.text, "a.py", "exec")
        assert mutant.text != SOURCE and mutant.before != mutant.after
    changes = {(mutant.definition, mutant.after) for mutant in mutants}
    assert {("", "BASE = 11"), ("Counter", "step = 1"), ("Counter.total", "return self.count * self.step - BASE"),
            ("Counter.total", "return self.count / self.step + BASE"), ("Counter.total", ""),
            ("Counter.add", "if count >= 5 and not self.closed:"), ("Counter.add", "if count > 5 or not self.closed:"),
            ("Counter.add", "if count > 5 and self.closed:"), ("outer.inner", "return 2")} <= changes
    assert not any("7" in mutant.before for mutant in mutants), "docstrings are skipped"
    assert not any("<<" in mutant.after or " is " in mutant.after for mutant in mutants)


def test_sample_is_random_by_seed_and_a_part_of_a_larger_one() -> None:
    samples = {seed: sample_mutants("a.py", SOURCE, 4, seed) for seed in range(6)}
    assert all(len(sample) == 4 for sample in samples.values())
    assert sample_mutants("a.py", SOURCE, 4, 3) == samples[3]
    assert len({tuple(mutant.key for mutant in sample) for sample in samples.values()}) > 3
    assert set(samples[3]) <= set(sample_mutants("a.py", SOURCE, 9, 3))
    assert sample_mutants("b.py", SOURCE, 4, 3) != samples[3]


def test_each_place_comes_before_the_second_mutant_of_one() -> None:
    """``count > 5`` has eight mutants, other places one or two."""
    places = 8
    sample = sample_mutants("a.py", SOURCE, places, 1)
    assert sum("count > 5" in mutant.before for mutant in sample) <= 5


def test_key_is_independent_of_lines() -> None:
    moved = sample_mutants("a.py", "import os\n\n\n" + SOURCE, None, 1)
    assert {mutant.key for mutant in moved} == {mutant.key for mutant in sample_mutants("a.py", SOURCE, None, 1)}


@pytest.mark.parametrize(("line", "name"), [
    (2, ""), (5, "Counter"), (6, "Counter"), (8, "Counter.total"), (11, "Counter.total"), (12, "Counter"),
    (20, "outer.inner"), (21, "outer")])
def test_definition_at_a_line(line: int, name: str) -> None:
    assert definition_at(SOURCE, line) == name


def test_dotted_exceptions_of_a_tuple_are_left_out() -> None:
    """cosmic-ray replaces the plain names of the tuple only."""
    source = "import os\ntry:\n    pass\nexcept (os.error, ValueError):\n    pass\n"
    assert ["os.error" in mutant.after for mutant in sample_mutants("a.py", source, None, 1)] == [True]
