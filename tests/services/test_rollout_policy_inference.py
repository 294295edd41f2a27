"""Inference requests of a group: which failures lose states, and what is replayed to rebuild them."""

import asyncio
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from five.clients.inference import NEWEST, REPLAY, RESET, RESTORE, WANT_STATE, ActResult
from five.services.rollout.env_slots import EnvSlots, SideAssignment
from five.services.rollout.policy_inference import (
    InferenceLost,
    PastVersionMissing,
    act,
    replay_and_act,
)
from five.services.rollout.step_buffer import StepBuffer
from rapid.rpc.errors import CallFailed, StatusCode

UNROLL, SAMPLES, GAMES, HEROES = 4, 2, 2, 1
SPECS: dict[str, tuple[tuple[int, ...], Any]] = {"h": ((1,), np.float32)}
BOTH = SideAssignment((NEWEST, NEWEST), (True, True), (True, True))
BOT_ON_DIRE = SideAssignment((5, NEWEST), (True, False), (False, True))


class Asked:
    """A request to the policy, as lists."""

    def __init__(self, sessions: Any, policies: Any, flags: Any, observations: Mapping[str, Any], states: Any,
                 replayed: Any) -> None:
        self.sessions = sessions.tolist()
        self.policies = policies.tolist()
        self.flags = flags.tolist()
        self.seen = np.asarray(observations["seen"])[:, 0].tolist()
        self.states = None if states is None else states["h"][:, 0].tolist()
        self.replayed = None if replayed is None else replayed[:, 0, 0].tolist()


class Inference:
    """Server that records requests, and answers with an error or unknown sessions where told."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answers: list[Exception | list[int]] = []

    async def act(self, *arguments: Any) -> ActResult:
        self.asked.append(Asked(*arguments))
        answer = self.answers.pop(0) if self.answers else []
        if isinstance(answer, Exception):
            raise answer
        return ActResult(np.array(answer, np.int64))

    async def close(self) -> None: ...


class Group:
    """A buffer whose observations and actions are their step, and two games: one of both sides, one against a bot.

    The second game began at step 2. States at a boundary are 10 times the step, plus the side's row.
    """

    def __init__(self) -> None:
        self.inference = Inference()
        self.buffer = StepBuffer({"seen": ((1,), np.float32)}, 14, GAMES, HEROES, 1)
        self.slots = EnvSlots(GAMES, UNROLL, SAMPLES, SPECS, np.random.default_rng(0))
        for step in range(14):
            self.buffer.observations["seen"][step] = step + np.array([[[0.0], [0.25]], [[0.5], [0.75]]])
            self.buffer.actions[step] = step
        self.slots.start_game(0, 0, BOTH)
        self.slots.start_game(1, 2, BOT_ON_DIRE)

    def record(self, step: int, *rows: int) -> None:
        states = np.array([[10.0 * step + row] for row in rows], np.float32)
        self.slots.record_states(step, np.array(rows), {"h": states})

    def sessions(self, *rows: int) -> list[int]:
        return [int(self.slots.sessions.reshape(-1)[row]) for row in rows]

    def act(self, step: int) -> ActResult:
        return asyncio.run(act(self.inference, self.buffer, self.slots, step))

    def replay(self, step: int, *rows: int) -> ActResult:
        lost = np.zeros((GAMES, 2), np.bool_)
        lost.reshape(-1)[list(rows)] = True
        return asyncio.run(replay_and_act(self.inference, self.buffer, self.slots, step, lost))


@pytest.fixture
def group() -> Group:
    return Group()


def test_request_has_the_acting_sides_in_order(group: Group) -> None:
    group.act(4)
    (asked,) = group.inference.asked
    assert asked.sessions == group.sessions(0, 1, 2)
    assert asked.policies == [NEWEST, NEWEST, 5]
    assert asked.flags == [WANT_STATE, WANT_STATE, 0]
    assert asked.seen == [4.0, 4.25, 4.5]
    assert asked.states is None and asked.replayed is None


def test_lost_states_are_replayed_from_their_last_boundary(group: Group) -> None:
    group.record(4, 0, 1)
    group.replay(6, 0, 1, 2)
    # The second game has no boundary but its start, so its replay begins there, with a reset.
    expected = [
        (2, [2], [REPLAY | RESET], None), (3, [2], [REPLAY], None),
        (4, [0, 1, 2], [REPLAY | RESTORE, REPLAY | RESTORE, REPLAY], [40.0, 41.0]),
        (5, [0, 1, 2], [REPLAY] * 3, None)]
    *replays, last = group.inference.asked
    found = [(int(asked.seen[0]), asked.sessions, asked.flags, asked.states) for asked in replays]
    assert found == [(step, group.sessions(*rows), flags, states) for step, rows, flags, states in expected]
    for (step, rows, _, _), asked in zip(expected, replays, strict=True):
        assert asked.replayed == [step] * len(rows)
    assert (last.sessions, last.seen) == (group.sessions(0, 1, 2), [6.0, 6.25, 6.5])
    assert last.flags == [0, 0, WANT_STATE] and last.replayed is None


def test_only_lost_sides_are_replayed(group: Group) -> None:
    group.record(4, 0, 1)
    group.replay(6, 1)
    assert [asked.sessions for asked in group.inference.asked] == [
        group.sessions(1), group.sessions(1), group.sessions(0, 1, 2)]
    assert group.inference.asked[0].states == [41.0]


def test_state_lost_at_its_boundary_needs_no_replay(group: Group) -> None:
    """The state at a new game's first step is zero, and the request itself resets it."""
    group.slots.start_game(0, 6, BOTH)
    group.replay(6, 0, 1)
    (asked,) = group.inference.asked
    assert asked.flags == [RESET | WANT_STATE, RESET | WANT_STATE, WANT_STATE]


def test_nothing_lost_repeats_the_request(group: Group) -> None:
    group.replay(6)
    assert [asked.sessions for asked in group.inference.asked] == [group.sessions(0, 1, 2)]


@pytest.mark.parametrize(("answers", "why"), [
    ([[1]], "sessions were lost again during replay"), ([[], [], [1]], "more sessions were lost during replay")])
def test_loss_during_a_replay_starts_it_again(group: Group, answers: list[Any], why: str) -> None:
    group.record(4, 0, 1)
    group.inference.answers = answers
    with pytest.raises(InferenceLost, match=why):
        group.replay(6, 0)


EPOCH_OVER = "this server is at epoch 2, the request at 1: the run has changed since"


@pytest.mark.parametrize(("code", "details", "kind"), [
    (StatusCode.UNAVAILABLE, "why", InferenceLost), (StatusCode.DEADLINE_EXCEEDED, "why", InferenceLost),
    (StatusCode.INTERNAL, "why", InferenceLost), (StatusCode.FAILED_PRECONDITION, EPOCH_OVER, InferenceLost),
    (StatusCode.NOT_FOUND, "why", PastVersionMissing), (StatusCode.FAILED_PRECONDITION, "why", CallFailed),
    (StatusCode.INVALID_ARGUMENT, "why", CallFailed), (StatusCode.UNAUTHENTICATED, "why", CallFailed)])
def test_failure_decides_whether_states_are_lost(group: Group, code: StatusCode, details: str,
                                                 kind: type[Exception]) -> None:
    group.inference.answers = [CallFailed(code, "inference:50051", "Act", details)]
    with pytest.raises(kind, match=details) as error:
        group.act(4)
    assert type(error.value) is kind
