import re
from pathlib import Path

import pytest

from five.agent.surgery.step_table import Case, cases, measure, spec_and_plan
from five.agent.surgery.steps import STEPS

PAGE = (Path(__file__).parents[3] / "docs" / "surgery-plans.md").read_text()


def test_page_lists_every_step_with_its_keys() -> None:
    writing = PAGE.split("## What each step preserves")[0]
    for kind, step in STEPS.items():
        (row,) = re.findall(rf"^\| `{kind}` \| ([^|]*) \|", writing, re.M)
        assert set(re.findall(r"`(\w+)`", row)) == step.model_fields.keys() - {"kind"}, kind


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_page_rows_are_current(case: Case) -> None:
    measured_part = PAGE.split("## What each step preserves")[1]
    (row,) = [line for line in measured_part.splitlines() if line.startswith(f"| {case.name} |")]
    spec, plan = spec_and_plan(case)
    assert row.endswith(f" | {spec.parameters:,} | {plan.target(spec).parameters:,} |")
    exact = plan.steps[0].promise(spec).exact
    assert row.split(" | ")[1].startswith("exact" if exact else "approximate")
    logit, value, kl = (float(cell) for cell in row.split(" | ")[2:5])
    assert max(logit, value) < 1e-5 and kl < 1e-10 if exact else logit > 0


def test_every_step_is_measured() -> None:
    assert {step["kind"] for case in cases() for step in case.steps} == STEPS.keys()
    (step,) = measure(next(cases()), steps=2, teams=1).steps
    assert step.holds and step.difference.max_logit_change < 1e-5
