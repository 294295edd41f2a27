"""The steps of operations: each looks at the world, does what is due once more, and says how far it is.

A step may be asked any number of times, by any controller, before and after a crash: it decides from what it sees.
"""

from collections.abc import Callable

from five.services.controller.operations.backend import World
from five.services.controller.operations.document import Operation, OperationStep
from five.services.controller.operations.jobs import ask, payload_of
from five.services.controller.operations.step_results import Done, Outcome, Refused, Wait
from rapid.store.state import ENDED, Status

StepFunction = Callable[[Operation, OperationStep, World], Outcome]


def _interrupted(world: World) -> str:
    """Why a run that should be operated on is not; '' when it is."""
    now = world.status()
    if now is None:
        return "there is no such run any more"
    if now.status is Status.OPERATING:
        return ""
    return f"the run is {now.status}{f' (by {now.who})' if now.who else ''}"


def pause(operation: Operation, step: OperationStep, world: World) -> Outcome:
    """Brings the run to rest, every component having said so, and takes it in hand."""
    now = world.status()
    if now is None or now.status in ENDED or now.status in (Status.STARTING, Status.WARMING):
        return Refused(f"the run is {now.status if now else 'gone'}: surgery begins on one that is running or paused")
    if now.status is Status.RUNNING:
        if step.waiting_for:
            return Refused(f"{now.who} resumed the run while it was being paused")
        world.transition(Status.PAUSING, f"operation {operation.id}")
        return Wait(("the run to pause",))
    if now.status is Status.PAUSING:
        return Wait(tuple(world.not_quiet()) or ("the run to pause",))
    if now.status is Status.PAUSED:
        world.transition(Status.OPERATING, f"operation {operation.id}")
    return Done()


def check(operation: Operation, step: OperationStep, world: World) -> Outcome:
    """Measures the plan on the newest version, against the approved bounds."""
    if stale := world.stale(operation):
        return Refused(stale)
    if operation.step("pause") is not None and (why := _interrupted(world)):
        return Refused(why)
    outcome = ask(operation, step, world, payload_of(operation))
    if isinstance(outcome, Done):
        world.keep_check(operation, outcome.result)
        if operation.step("publish") is not None and not outcome.result.get("ok"):
            return Refused(f"the check is outside the approved bounds: {outcome.result.get('why', 'see its report')}")
    return outcome


def _on_a_resting_run(operation: Operation, step: OperationStep, world: World) -> Outcome:
    if why := _interrupted(world):
        return Refused(why)
    return ask(operation, step, world, payload_of(operation))


def checkpoint(operation: Operation, step: OperationStep, world: World) -> Outcome:
    """The optimizer writes everything down that it has learned so far."""
    return _on_a_resting_run(operation, step, world)


def transform(operation: Operation, step: OperationStep, world: World) -> Outcome:
    """The optimizer makes the new checkpoint and the new version, beside the run's own."""
    return _on_a_resting_run(operation, step, world)


def hold(operation: Operation, step: OperationStep, world: World) -> Outcome:
    """Waits for a person, where one was asked for. Cancelling is free until here."""
    if why := _interrupted(world):
        return Refused(why)
    if operation.request.hold and operation.go_on is None:
        return Wait(("an operator to continue or to cancel",))
    return Done()


def publish(operation: Operation, step: OperationStep, world: World) -> Outcome:
    """The cut-over: head, record, epoch and status change in one atomic step, or none of them."""
    if not world.published(operation):
        if stale := world.stale(operation):
            return Refused(stale)
        if why := _interrupted(world):
            # It may have been cut over between the two looks.
            return _published(operation) if world.published(operation) else Refused(why)
        outcome = ask(operation, step, world, payload_of(operation))
        if not world.published(operation):
            # An answer without a cut-over is none.
            return Refused("the optimizer answered, but the run was not cut over") if isinstance(outcome, Done) \
                else outcome
    return _published(operation)


def _published(operation: Operation) -> Done:
    transformed = operation.step("transform")
    return Done({"version": transformed.result.get("version") if transformed else None})


def restore(operation: Operation, step: OperationStep, world: World) -> Outcome:
    """After a revert: schedules are what they were, and an anneal from after the version is over."""
    return Done(world.restore(operation))


def keep(operation: Operation, step: OperationStep, world: World) -> Outcome:
    """The optimizer writes a checkpoint of the run as it goes on, which stays."""
    return ask(operation, step, world, payload_of(operation))


def begin(operation: Operation, step: OperationStep, world: World) -> Outcome:
    """The change begins to be annealed, from the checkpoint that was kept."""
    if why := world.begin_anneal(operation):
        return Refused(why)
    return Done()


def renew(operation: Operation, step: OperationStep, world: World) -> Outcome:
    """Waits until every service has come up under the new record."""
    if why := _over(world):
        return Wait((why,))
    missing = world.not_renewed(operation)
    return Wait(tuple(missing)) if missing else Done()


def warm_up_until(operation: Operation) -> int:
    """The version at which the warm-up ends."""
    published = operation.step("publish")
    first = int(published.result.get("version") or 0) if published is not None else 0
    return first + operation.request.warm_up_versions


def warm_up(operation: Operation, step: OperationStep, world: World) -> Outcome:
    """Waits while the learning rate is 0: moments and normalisers settle."""
    until, head = warm_up_until(operation), world.head()
    if head >= until:
        return Done({"until": until})
    if why := _over(world):
        return Wait((why,))
    return Wait((f"version {until}, the head is {head}",))


def _over(world: World) -> str:
    """Why nothing moves although the run was cut over; '' when it does."""
    now = world.status()
    if now is None:
        return "the run, which is gone"
    if now.status in ENDED or now.status in (Status.PAUSING, Status.PAUSED):
        return f"somebody to resume the run, which is {now.status} (by {now.who})"
    return ""


def run(operation: Operation, step: OperationStep, world: World) -> Outcome:
    """The run learns again."""
    now = world.status()
    if now is not None and now.status is Status.WARMING:
        world.transition(Status.RUNNING, f"operation {operation.id}: the warm-up is over")
    elif now is not None and now.status is Status.OPERATING:
        return Wait(("the run to warm up",))
    return Done()


STEPS: dict[str, StepFunction] = {
    "pause": pause, "check": check, "checkpoint": checkpoint, "transform": transform, "hold": hold,
    "publish": publish, "restore": restore, "renew": renew, "warm_up": warm_up, "run": run, "keep": keep,
    "begin": begin}
