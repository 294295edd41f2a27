"""Forward passes on the CPU: which rows a version plays, what is returned of them, and whose states change."""

from typing import Any

import numpy as np
import pytest
import torch

from five.services.inference.forward import HostForward, VersionRows, flatten_outputs, policy_debug
from five.services.inference.models import ResidentVersion
from five.services.inference.requests import Request
from five.services.inference.sessions import SessionTable
from tests.services.counting import HEROES, STATE_SPECS, CountingPolicy, observations

SESSIONS = [11, 12, 13, 14]
NONE = np.zeros(4, np.bool_)


class Played:
    """Four sessions whose states count 10, 11, 12 and 13 steps, and a version that plays them."""

    def __init__(self, policy: Any = None, seed: int = 0) -> None:
        self.table = SessionTable(STATE_SPECS, torch.device("cpu"), 100, 60.0)
        self.slots = self.table.find(SESSIONS)
        self.table.open(SESSIONS, self.slots)
        self.table.write(self.slots, {
            "count": np.arange(10, 14, dtype=np.float32).reshape(4, 1, 1), "trace": np.zeros((4, 1, 2), np.float32)})
        self.forward = HostForward(self.table, seed)
        self.served = ResidentVersion(3, "", policy or CountingPolicy(), 1.0)

    def launch(self, rows: list[int] | None = None, want: Any = NONE, debug: Any = NONE, greedy: bool = False,
               replayed: Any = None) -> dict[str, Any]:
        part = VersionRows.of(None if rows is None else np.array(rows), self.slots, np.array(want, np.bool_),
                              np.array(debug, np.bool_), greedy, replayed)
        return self.forward.launch(self.served, observations(1.0, 2.0, 3.0, 4.0), part)()

    def counts(self) -> list[float]:
        return self.table.gather(self.slots)["count"].flatten().tolist()


def test_version_plays_only_its_rows() -> None:
    played = Played()
    found = played.launch([2, 0])
    assert found["values"].tolist() == [[3.0], [1.0]]
    assert played.counts() == [11, 11, 13, 13]
    assert {name: array.dtype for name, array in found.items()} == {
        "actions": np.int16, "logp": np.float32, "values": np.float32}
    assert Played().launch()["values"].tolist() == [[1.0], [2.0], [3.0], [4.0]]


def test_states_are_those_before_the_step_of_rows_that_want_them() -> None:
    found = Played().launch([3, 1, 0], want=[True, False, True, True])
    assert found["state/count"].flatten().tolist() == [13, 10]
    assert found["state/trace"].shape == (2, HEROES, 2) and found["state/trace"].dtype == np.float32
    assert found["aux/win_probability"].shape == (2, HEROES)
    assert not any(name.startswith("debug/") for name in found)


def test_debug_data_is_that_of_watched_rows() -> None:
    found = Played().launch([3, 1, 0], debug=[False, True, False, True])
    np.testing.assert_allclose(found["debug/choice"][:, 0, 0], [1 / 15, 1 / 13], rtol=1e-3)
    assert found["debug/win_probability"].shape == (2, HEROES)
    assert {array.dtype for name, array in found.items() if name.startswith("debug/")} == {np.dtype(np.float16)}
    assert "debug/aim" not in found and not any(name.startswith(("state/", "aux/")) for name in found)


def test_given_actions_and_greedy_ones() -> None:
    assert (Played().launch(greedy=True)["actions"][..., 0] == 29).all()
    replayed = np.full((4, HEROES, 6), -1, np.int16)
    replayed[1] = 5
    found = Played().launch([1, 3], replayed=replayed)["actions"]
    assert found[0].tolist() == [[5] * 6] and found[1, 0, 0] == 14 % 7


def test_observations_of_several_requests_are_joined_in_order() -> None:
    def request(*counts: float) -> Request:
        n = len(counts)
        return Request(list(range(n)), np.zeros(n, np.int64), np.zeros(n, np.uint8), observations(*counts))

    forward, one = Played().forward, request(5.0)
    assert not forward.packed
    joined = forward.join([request(1.0, 2.0), request(3.0)])
    assert joined["shared"][:, 0].tolist() == [1, 2, 3] and joined.keys() == one.observations.keys()
    assert forward.join([one])["shared"] is one.observations["shared"]
    before = dict(one.observations)
    forward.stage(one)
    assert one.staged is None and one.observations == before


def test_seed_decides_the_samples() -> None:
    class Sampling(CountingPolicy):
        def act(self, obs: Any, state: Any, *, generator: Any = None, **options: Any) -> Any:
            out = super().act(obs, state, **options)
            out.values[:] = torch.rand(out.values.shape, generator=generator)
            return out

    one, same, other = (Played(Sampling(), seed).launch()["values"].tolist() for seed in (4, 4, 5))
    assert one == same != other


@pytest.mark.parametrize("writeable", [True, False])
def test_arrays_of_a_message_are_not_changed(writeable: bool) -> None:
    class Writing(CountingPolicy):
        def act(self, obs: Any, state: Any, **options: Any) -> Any:
            out = super().act(obs, state, **options)
            obs["shared"][:] = 7
            return out

    played, batch = Played(Writing()), observations(1.0, 2.0, 3.0, 4.0)
    for array in batch.values():
        array.flags.writeable = writeable
    played.forward.launch(played.served, batch, VersionRows.of(None, played.slots, NONE, NONE, False, None))()
    assert (batch["shared"] == 7).all() == writeable  # a copy is made only where the array is a view of a message


def test_outputs_have_names() -> None:
    acted = CountingPolicy().act({"shared": torch.ones(2, 3)}, {
        "count": torch.zeros(2, 1, 1), "trace": torch.zeros(2, 1, 2)})
    found = flatten_outputs(acted)
    assert list(found) == ["actions", "logp", "values", "state/count", "state/trace", "aux/win_probability",
                           "aux/net_worth_rank", "aux/building_events", "choice"]
    shown = policy_debug(found, torch.tensor([1]))
    assert list(shown) == ["win_probability", "net_worth_rank", "building_events", "choice"]
    assert shown["choice"].shape == (1, 1, 30)
    np.testing.assert_allclose(shown["choice"].numpy(), 0.5, rtol=1e-5)
