"""Requests and replies as arrays: their size, their defaults, and the reply that evaluates nothing."""

import numpy as np

from five.services.inference.requests import Reply, Request, unknown_reply


def test_request_and_reply_have_neutral_defaults() -> None:
    request = Request([1], np.zeros(1, np.int64), np.zeros(1, np.uint8), {})
    assert (request.states, request.replayed, request.stream, request.staged, request.nbytes) == (
        None, None, 0, None, 0)
    empty = np.zeros(0, np.float32)
    reply = Reply([], empty.astype(np.int16), empty, empty, empty.astype(np.int64), {}, {}, 1, 2, 3.0)
    assert (reply.policy_debug, reply.closed_ns, reply.launched_ns) == ({}, 0, 0)


def test_size_of_a_request_is_that_of_its_arrays() -> None:
    observations = {"a": np.zeros((2, 5), np.float32), "b": np.zeros((2, 3), np.int16)}
    policies, flags = np.zeros(2, np.int64), np.zeros(2, np.uint8)
    assert Request([1, 2], policies, flags, observations).nbytes == 40 + 12
    states = {"h": np.zeros((1, 7), np.float32)}
    assert Request([1, 2], policies, flags, observations, states).nbytes == 40 + 12 + 28


def test_reply_about_unknown_sessions_is_empty() -> None:
    reply = unknown_reply([4, 9])
    assert reply.unknown == [4, 9]
    assert not any(len(a) for a in (reply.actions, reply.log_probabilities, reply.values, reply.versions))
    assert (reply.actions.dtype, reply.versions.dtype, reply.values.dtype) == (np.int16, np.int64, np.float32)
    assert reply.states == reply.auxiliary == reply.policy_debug == {}
    assert (reply.queue_us, reply.forward_us, reply.reward_std, reply.closed_ns, reply.launched_ns) == (0, 0, 1.0, 0, 0)
