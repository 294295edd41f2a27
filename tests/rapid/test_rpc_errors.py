"""Failures of a server's own calls: what its caller receives."""

import grpc
import pytest

from rapid.rpc.errors import CallFailed, failure_from, status_of

CODE = grpc.StatusCode


def of_called_server(code: grpc.StatusCode, details: str = "refused by the test") -> CallFailed:
    return CallFailed(code, "inference:7003", "Act", details)


@pytest.mark.parametrize("code", [CODE.UNAVAILABLE, CODE.DEADLINE_EXCEEDED, CODE.CANCELLED, CODE.NOT_FOUND])
def test_failure_that_the_caller_can_handle_passes_on(code: grpc.StatusCode) -> None:
    error = of_called_server(code)
    assert status_of(error) == (code, str(error))


@pytest.mark.parametrize("code", [CODE.INVALID_ARGUMENT, CODE.PERMISSION_DENIED, CODE.UNAUTHENTICATED, CODE.INTERNAL])
def test_other_failure_of_a_called_server_is_internal(code: grpc.StatusCode) -> None:
    assert status_of(of_called_server(code)) == (
        CODE.INTERNAL, "internal error (CallFailed); the server's log has the details")


def test_error_names_the_server_that_does_not_respond() -> None:
    """The evaluator responds; the inference that it called does not."""
    inner = failure_from(CODE.UNAVAILABLE, "failed to connect to all addresses", "inference:7003", "Act")
    outer = failure_from(*status_of(inner), "evaluator:7005", "PlayMatch")
    assert str(outer) == ("PlayMatch at evaluator:7005: Act at inference:7003: no server responds there (failed to "
                          "connect to all addresses) (UNAVAILABLE) (UNAVAILABLE)")
