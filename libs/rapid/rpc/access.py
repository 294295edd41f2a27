"""Access control of gRPC: which caller may call which method.

``ACCESS`` is the only declaration. A method that it lacks is refused, and a method of ``protos/`` that it lacks fails a
test. Health checks need no token (`rapid.rpc.server`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

KIBIBYTE = 1 << 10


class Caller(StrEnum):
    """A kind of process that calls others. Each has its own secret, which all its replicas share."""

    CONTROLLER = "controller"
    EVALUATOR = "evaluator"
    PLAY = "play"
    ROLLOUT = "rollout"
    CLI = "cli"  # the `five` command, of runs of its own machine only


class Audience(StrEnum):
    """A kind of server. A token is valid for one audience."""

    DOTA_ENV = "dota_env"
    EVALUATOR = "evaluator"
    INFERENCE = "inference"
    OPPONENTS = "opponents"
    OPTIMIZER = "optimizer"
    PLAY = "play"


@dataclass(frozen=True)
class ServiceAccess:
    """Access to a gRPC service: its server, the callers of each method, and the largest request in bytes.

    ``max_request_bytes`` 0 means ``rpc.max_message_mebibytes``.
    """

    audience: Audience
    callers: Mapping[str, frozenset[Caller]]
    max_request_bytes: int = 0


def _only(*callers: Caller) -> frozenset[Caller]:
    return frozenset(callers)


_PLAYERS = _only(Caller.ROLLOUT, Caller.EVALUATOR, Caller.PLAY)
_CONTROLLER = _only(Caller.CONTROLLER)
_ROLLOUT = _only(Caller.ROLLOUT)
_MATCHES = _only(Caller.CONTROLLER, Caller.CLI)

ACCESS: Mapping[str, ServiceAccess] = {
    # Actions and configurations of games, kilobytes for hundreds of games, and a game's snapshot of 1 MB.
    "five.v1.EnvService": ServiceAccess(Audience.DOTA_ENV, {"Play": _ROLLOUT}, 8192 * KIBIBYTE),
    "five.v1.EvaluatorService": ServiceAccess(
        Audience.EVALUATOR, {"PlayMatch": _MATCHES, "GetRatings": _MATCHES}, 64 * KIBIBYTE),
    "five.v1.ExperienceService": ServiceAccess(Audience.OPTIMIZER, {"Push": _ROLLOUT}),
    "five.v1.InferenceService": ServiceAccess(Audience.INFERENCE, {"Act": _PLAYERS, "GetModel": _PLAYERS}),
    "five.v1.OpponentService": ServiceAccess(
        Audience.OPPONENTS, {"AssignOpponent": _ROLLOUT, "ReportResult": _ROLLOUT, "GetPool": _only(Caller.CLI)},
        64 * KIBIBYTE),
    "five.v1.PlayService": ServiceAccess(
        Audience.PLAY, dict.fromkeys(("Offer", "Open", "List", "Close", "Recordings", "Recording", "Join"),
                                     _CONTROLLER), 64 * KIBIBYTE),
}


def is_allowed(caller: Caller, method: str) -> bool:
    """Return whether ``caller`` may call ``method``, written /package.Service/Method."""
    service, _, name = method.removeprefix("/").partition("/")
    access = ACCESS.get(service)
    return access is not None and caller in access.callers.get(name, ())


def max_request_bytes(services: Iterable[str], limit: int) -> int:
    """Return the size of the largest request that a server of these services accepts, at most ``limit``."""
    sizes = [ACCESS[name].max_request_bytes or limit if name in ACCESS else limit for name in services]
    return min(limit, max(sizes, default=limit))
