"""Steps that need the model: orders to the optimizer's first rank, and what its answers mean."""

from typing import Any

from five.services.controller.operations.backend import World
from five.services.controller.operations.document import Operation, OperationStep
from five.services.controller.operations.step_results import Done, Failed, Outcome, Refused, Wait
from rapid.store.orders import OrderState


def prefix_of(operation: Operation) -> str:
    """What the identities of an operation's orders begin with."""
    return f"{operation.id}/"


def identity_of(operation: Operation, step: OperationStep) -> str:
    """The order of a step's present attempt."""
    return f"{prefix_of(operation)}{step.name}/{step.attempt}"


def payload_of(operation: Operation) -> dict[str, Any]:
    """What the optimizer is told: the plan, and what the steps before this one have made."""
    request = operation.request
    return {"operation": operation.id, "plan": request.plan, "digest": request.digest, "parent": request.parent,
            "bounds": request.bounds, "epoch": request.epoch, "to_version": request.to_version,
            "warm_up_versions": request.warm_up_versions,
            "who": operation.who, "made": {s.name: s.result for s in operation.steps if s.result}}


def ask(operation: Operation, step: OperationStep, world: World, payload: dict[str, Any]) -> Outcome:
    """Places the order of this attempt, or looks how it goes."""
    order = world.order(identity_of(operation, step), step.name, payload)
    if order.state is OrderState.WAITING:
        return Wait((f"optimizer 0, to take the order {step.name!r}",))
    if order.state is OrderState.CLAIMED:
        if order.attempt > world.limits.attempts:
            return Refused(f"{order.attempt - 1} optimizers ended while they carried out {step.name!r}; their logs say "
                           "why")
        again = f", attempt {order.attempt}" if order.attempt > 1 else ""
        return Wait((f"{order.holder}, which carries out {step.name!r}{again}",))
    if order.state is OrderState.DONE:
        return Done(dict(order.answer))
    if order.state is OrderState.REFUSED:
        return Refused(order.error)
    return Failed(order.error or f"the order {step.name!r} was withdrawn")
