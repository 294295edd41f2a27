"""The dense path equals the packed one, and its operations do not depend on the data."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from five.agent.model.policy import Policy, State
from five.agent.model.process_set import DensePool, PackedPool, segment_max
from tests.agent.model_cases import SMALL, layout, random_obs
from tests.agent.test_learning_no_host_reads import RefusedFunctions, RefusedOperators
from tests.agent.test_model_inputs import bare_layout
from tests.agent.test_model_policy import make, see

pytestmark = pytest.mark.usefixtures("as_on_a_device")
STEPS, TEAMS = 6, 3
CLOSE = {"rtol": 1e-4, "atol": 2e-6}


def pair(heroes: int, precision: str = "float32") -> tuple[Policy, Policy]:
    """Return one policy packed and dense, with statistics that make absent rows differ from zero."""
    config = SMALL.model_copy(update={"precision": precision})
    packed, dense = make(heroes, config=config), make(heroes, config=config)
    obs = random_obs(packed.layout, STEPS, TEAMS, seed=11)
    obs["shared"] = obs["shared"] + 1
    see(packed, obs)
    dense.load_state_dict(packed.state_dict())
    dense.dense = True
    return packed, dense


def cases(of: Policy, *, present: float = 0.4) -> dict[str, Tensor]:
    """Return team-steps [STEPS, TEAMS]; one is empty, one has units but no set rows."""
    lay = of.layout
    obs = random_obs(lay, STEPS, TEAMS, seed=3, present=present)
    for name in obs:
        obs[name][1, 2] = 0
    for name in ("hero_modifiers", "abilities", "items", "unit_modifiers", "pickups"):
        for array in ("shared", "shared_ids"):
            obs[array][4, 0, lay.blocks[name].span(array)] = 0  # type: ignore[arg-type]
    return obs


def resets_of() -> Tensor:
    resets = torch.zeros(STEPS, TEAMS, dtype=torch.bool)
    resets[0, 0] = resets[3, 1] = resets[4, 1] = resets[5, 2] = True
    return resets


def start_of(policy: Policy) -> State:
    generator = torch.Generator().manual_seed(5)
    return {name: torch.randn(array.shape, generator=generator) for name, array in
            policy.initial_state(TEAMS).items()}


def actions_of(policy: Policy, obs: dict[str, Tensor]) -> Tensor:
    generator = torch.Generator().manual_seed(2)
    state = start_of(policy)
    return torch.stack([policy.act({n: a[t] for n, a in obs.items()}, state, generator=generator).actions
                        for t in range(STEPS)])


@pytest.mark.parametrize("heroes", [1, 5])
@pytest.mark.parametrize("greedy", [False, True])
def test_dense_act_equals_packed(heroes: int, greedy: bool) -> None:
    packed, dense = pair(heroes)
    obs = cases(packed)
    for t in range(STEPS):
        step = {name: array[t] for name, array in obs.items()}
        one, two = (p.act(step, start_of(p), greedy=greedy, generator=torch.Generator().manual_seed(t))
                    for p in (packed, dense))
        assert torch.equal(one.actions, two.actions)
        torch.testing.assert_close(two.logp, one.logp, **CLOSE)
        torch.testing.assert_close(two.values, one.values, **CLOSE)
        torch.testing.assert_close(two.state, one.state, **CLOSE)
        torch.testing.assert_close(two.aux, one.aux, **CLOSE)
        torch.testing.assert_close((two.primary, two.unit), (one.primary, one.unit), **CLOSE)
    replayed = dense.act(step, start_of(dense), replay=one.actions)
    torch.testing.assert_close(replayed.state, one.state, **CLOSE)


def loss_of(policy: Policy, obs: dict[str, Tensor], actions: Tensor) -> tuple[Tensor, Any]:
    out = policy.unroll(obs, actions, start_of(policy), resets_of())
    weights = torch.randn(out.logp.shape, generator=torch.Generator().manual_seed(8))
    aux = sum((a.square().mean() for a in out.aux.values()), torch.zeros(()))
    return ((out.logp + out.values + 0.1 * out.entropy) * weights).mean() + aux, out


@pytest.mark.parametrize("heroes", [1, 5])
@pytest.mark.parametrize("present", [0.0, 0.4, 1.0])
def test_dense_unroll_and_gradients_equal_packed(heroes: int, present: float) -> None:
    packed, dense = pair(heroes)
    obs = cases(packed, present=present)
    actions = actions_of(packed, obs)
    (one, expected), (two, found) = (loss_of(p, obs, actions) for p in (packed, dense))
    for name in ("logp", "values", "entropies", "aux", "state"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name), **CLOSE)
    torch.testing.assert_close(found.observation_moments, expected.observation_moments, rtol=1e-5, atol=1e-3)
    assert torch.equal(found.observation_moments[0], expected.observation_moments[0])
    one.backward()
    two.backward()
    others = dict(dense.named_parameters())
    for name, parameter in packed.named_parameters():
        expected = others[name].grad
        here = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        assert expected is not None and torch.isfinite(expected).all(), name
        torch.testing.assert_close(expected, here, rtol=1e-3, atol=1e-6, msg=lambda m, name=name: f"{name}: {m}")


def test_dense_unroll_is_close_in_bfloat16() -> None:
    packed, dense = pair(5, "bfloat16")
    obs = cases(packed)
    actions = actions_of(packed, obs)
    (one, expected), (two, found) = (loss_of(p, obs, actions) for p in (packed, dense))
    # Products are split at other places and round differently; the functions are equal.
    torch.testing.assert_close(found.logp, expected.logp, rtol=0.05, atol=0.05)
    torch.testing.assert_close(found.values, expected.values, rtol=0.05, atol=0.05)
    one.backward()
    two.backward()
    gradients = [torch.cat([p.grad.flatten() for _, p in sorted(policy.named_parameters()) if p.grad is not None])
                 for policy in (packed, dense)]
    assert torch.nn.functional.cosine_similarity(*gradients, 0) > 0.99


def test_dense_scores_equal_packed() -> None:
    packed, dense = pair(5)
    obs = cases(packed)
    actions = actions_of(packed, obs)
    one, two = (p.scores(obs, actions, start_of(p), resets_of()) for p in (packed, dense))
    torch.testing.assert_close(two, one, **CLOSE)


def test_dense_on_a_layout_with_few_blocks() -> None:
    torch.manual_seed(0)
    packed, dense = Policy(bare_layout(), SMALL), Policy(bare_layout(), SMALL)
    dense.load_state_dict(packed.state_dict())
    dense.dense = True
    obs = random_obs(packed.layout, STEPS, TEAMS)
    actions = torch.zeros(STEPS, TEAMS, 1, 6, dtype=torch.int16)
    one, two = (p.unroll(obs, actions, p.initial_state(TEAMS)) for p in (packed, dense))
    torch.testing.assert_close(two.logp, one.logp, **CLOSE)
    torch.testing.assert_close(two.values, one.values, **CLOSE)


@pytest.mark.parametrize("garbage", [77.0, float("nan"), float("inf")])
def test_absent_rows_are_never_read(garbage: float) -> None:
    """Garbage in absent rows changes neither values nor gradients."""
    _, dense = pair(5)
    lay, obs = dense.layout, cases(dense)
    actions = actions_of(dense, obs)
    dirty = {name: array.clone() for name, array in obs.items()}
    spoiled = 0
    for block, array in (("units", "shared"), ("units", "private"), ("heroes", "shared"), ("heroes", "private"),
                         ("abilities", "shared"), ("hero_modifiers", "shared"), ("unit_modifiers", "shared"),
                         ("items", "shared"), ("allied_heroes", "shared")):
        of = lay.blocks["units" if "heroes" in block else block]
        ids = obs["shared_ids"][..., of.span("shared_ids")].long().unflatten(-1, (of.instances, -1))[..., 0]
        b = lay.blocks[block]
        absent = ids[..., :b.instances] == 0
        view = dirty[array][..., b.span(array)].unflatten(-1, (b.instances, b.width(array)))  # type: ignore[arg-type]
        view[absent[:, :, None].expand(view.shape[:-1]) if array == "private" else absent] = garbage
        spoiled += int(absent.sum())
    assert spoiled > 100
    outcomes = []
    for arrays in (obs, dirty):
        dense.zero_grad()
        loss, out = loss_of(dense, arrays, actions)
        loss.backward()
        outcomes.append((out.logp, out.values, out.observation_moments,
                         [p.grad.clone() for p in dense.parameters() if p.grad is not None]))
    torch.testing.assert_close(outcomes[1], outcomes[0], rtol=0, atol=0)


class Operators(TorchDispatchMode):
    """Record every operator with its sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append((func, [tuple(a.shape) for a in args if isinstance(a, Tensor)]))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_operations_do_not_depend_on_the_data(precision: str) -> None:
    _, dense = pair(2, precision)
    sequences = []
    for seed, present in ((0, 0.4), (1, 1.0), (2, 0.0)):
        obs = random_obs(dense.layout, STEPS, TEAMS, seed=seed, present=present)
        resets = torch.rand(STEPS, TEAMS) < present
        with Operators() as operators, RefusedFunctions(), RefusedOperators():
            acted = dense.act({n: a[0] for n, a in obs.items()}, dense.initial_state(TEAMS))
            actions = acted.actions[None].expand(STEPS, -1, -1, -1)
            out = dense.unroll(obs, actions, dense.initial_state(TEAMS), resets)
            (out.logp.sum() + out.values.sum() + out.entropy.sum()).backward()
        sequences.append(operators.seen)
        dense.zero_grad()
    assert len(sequences[0]) > 500 and sequences[0] == sequences[1] == sequences[2]


def test_slot_max_equals_segment_max() -> None:
    """Rows include equal ones and a pool at its floor."""
    torch.manual_seed(0)
    owners, slots, steps = 3, 4, 5
    is_present = torch.rand(owners, slots, steps) < 0.6
    is_present[1, :, 2] = False
    rows = torch.randint(-2, 3, (owners, slots, steps, 6)).double().flatten(0, 2).requires_grad_()
    owner, slot, step = is_present.nonzero(as_tuple=True)
    packed = segment_max(rows.view(owners, slots, steps, 6)[owner, slot, step],
                         PackedPool(owner * steps + step, owners * steps, slot, slots))
    dense = segment_max(rows, DensePool(is_present.flatten(), slots, steps))
    torch.testing.assert_close(dense, packed)
    weights = torch.randn_like(packed)
    one, two = (torch.autograd.grad((pooled * weights).sum(), rows)[0] for pooled in (packed, dense))
    torch.testing.assert_close(two, one)
    assert (one == 0).any() and (one != 0).any()


def test_dense_is_not_part_of_a_version() -> None:
    policy = Policy(layout(1), SMALL)
    before = list(policy.state_dict())
    policy.dense = True
    assert list(policy.state_dict()) == before


@pytest.mark.gpu
@pytest.mark.parametrize("heroes", [1, 5])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_dense_on_a_gpu_equals_packed_on_a_cpu(heroes: int, precision: str) -> None:
    """CUDA's sync debug mode also checks that the host never waits."""
    packed, dense = pair(heroes, precision)
    dense.cuda()
    obs = cases(packed)
    actions = actions_of(packed, obs)
    gpu_obs = {name: array.cuda() for name, array in obs.items()}
    state = {name: array.cuda() for name, array in start_of(packed).items()}
    given, resets = actions.cuda(), resets_of().cuda()
    _, expected = loss_of(packed, obs, actions)
    for check in ("default", "error"):  # the first run allocates, the second is checked
        dense.zero_grad()
        try:
            torch.cuda.set_sync_debug_mode(check)
            out = dense.unroll(gpu_obs, given, state, resets)
            (out.logp.mean() + out.values.mean() + out.entropy.mean()).backward()
            acted = dense.act({n: a[0] for n, a in gpu_obs.items()}, state, greedy=True)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    tolerance = 1e-3 if precision == "float32" else 0.1
    torch.testing.assert_close(out.logp.cpu(), expected.logp, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(out.values.cpu(), expected.values, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(out.observation_moments.cpu(), expected.observation_moments, rtol=1e-4, atol=1e-2)
    assert torch.isfinite(acted.logp).all()
    reached = [p.grad for p in dense.parameters() if p.grad is not None]  # this loss does not train the auxiliary heads
    assert reached and all(torch.isfinite(grad).all() for grad in reached)
