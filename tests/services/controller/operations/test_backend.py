"""Limits of the steps of an operation."""

import pytest

from five.run.config.controller import OperationsConfig
from five.services.controller.operations.backend import StepLimits
from five.services.controller.operations.document import OperationState, StepState
from five.services.controller.operations.engine import advance
from tests.services.controller.operations.memory_backend import MemoryBackend, carry_on, surgery


@pytest.mark.parametrize("failures", [2, 3])
def test_step_is_tried_three_times_without_a_deadline(failures: int) -> None:
    run = MemoryBackend(limits=StepLimits(), failing={"transform": failures})
    done = carry_on(surgery(run), run)
    step = done.step("transform")
    assert step is not None and (step.attempt, step.deadline) == (3, None)
    assert done.state is (OperationState.DONE if failures < 3 else OperationState.FAILED)
    assert StepLimits().attempts == OperationsConfig().attempts


def test_step_without_a_limit_waits_for_ever() -> None:
    run = MemoryBackend(busy=["rollout-3"], limits=StepLimits({"check": 5.0}))
    operation = surgery(run)
    for _ in range(5):
        operation = advance(operation, run)
        run.clock += 1e6
    step = operation.step("pause")
    assert step is not None and (step.state, step.waiting_for) == (StepState.GOING, ("rollout-3",))
