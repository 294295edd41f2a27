import pytest
import torch

from five.agent import native_tensors
from five.agent.learning.clip import ElementClip

CPU = torch.device("cpu")


@pytest.fixture(params=["native", "pytorch"], autouse=True)
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test with the native code of a CPU and with PyTorch's operators, as on a GPU."""
    if request.param == "pytorch":
        monkeypatch.setattr(native_tensors, "is_native", lambda tensor: False)


def test_clip_matches_the_formula():
    torch.manual_seed(0)
    clip = ElementClip(50, 5.0, 0.9, 10, CPU)
    seen = []
    clipped_any = False
    for step in range(60):
        g = torch.randn(50) * (20.0 if step % 13 == 12 else 1.0)
        out = g.clone()
        share = clip.apply_(out)
        if step < 10:
            expected = g
        else:
            weights = torch.tensor([0.1 * 0.9 ** (step - 1 - i) for i in range(step)])
            v = (torch.stack(seen) ** 2 * weights[:, None]).sum(0) / (1 - 0.9**step)
            bound = 5 * v.sqrt()
            expected = g.clamp(-bound, bound)
            assert share == pytest.approx((g.abs() > bound).float().mean().item())
            clipped_any |= bool((g.abs() > bound).any())
        torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-6)
        seen.append(g)  # v uses the unclipped gradient
    assert clipped_any


def test_constant_gradient_is_not_clipped():
    clip = ElementClip(3, 5.0, 0.999, 100, CPU)
    for _ in range(150):
        g = torch.tensor([1e-3, -1.0, 1e3])
        assert clip.apply_(g) == 0
        torch.testing.assert_close(g, torch.tensor([1e-3, -1.0, 1e3]))


def test_spike_is_clipped_to_five_deviations():
    clip = ElementClip(1, 5.0, 0.999, 100, CPU)
    for _ in range(100):
        clip.apply_(torch.ones(1))
    g = torch.tensor([1e6])
    assert clip.apply_(g) == 1
    assert g.item() == pytest.approx(5.0, rel=1e-4)
    assert clip.v.item() > 1e8  # v includes the unclipped spike


def test_warm_up_steps_are_not_clipped():
    clip = ElementClip(1, 5.0, 0.999, 100, CPU)
    for _ in range(99):
        clip.apply_(torch.ones(1))
    g = torch.tensor([1e6])
    clip.apply_(g)
    assert g.item() == 1e6


def test_first_gradient_without_warm_up_is_not_clipped():
    clip = ElementClip(2, 5.0, 0.9, 0, CPU)
    g = torch.tensor([3.0, -1e6])
    assert clip.apply_(g) == 0
    assert g.tolist() == [3.0, -1e6] and clip.steps == 1
    g = torch.tensor([15.1, 4e6])
    assert clip.apply_(g) == 0.5  # the bound is five times the first gradient
    torch.testing.assert_close(g, torch.tensor([15.0, 4e6]))


def test_unusable_gradient_does_not_count():
    used, skipped = (ElementClip(1, 5.0, 0.9, 2, CPU) for _ in range(2))
    for value in (1.0, 2.0):
        for clip in (used, skipped):
            clip.apply_(torch.tensor([value]), torch.tensor(True))
    skipped.apply_(torch.zeros(1), torch.tensor(False))
    assert (skipped.v, skipped.steps) == (used.v, 2)
    skipped.steps = 1
    g = torch.tensor([1e6])
    skipped.apply_(g)
    assert g.item() == 1e6  # warming up again
    assert skipped.steps == 2


def test_element_without_history_is_not_clipped():
    clip = ElementClip(2, 5.0, 0.999, 10, CPU)
    for _ in range(20):
        clip.apply_(torch.tensor([1.0, 0.0]))
    g = torch.tensor([1.0, 3.0])
    clip.apply_(g)
    assert g.tolist() == [1.0, 3.0]


def test_factor_0_disables_the_clip():
    clip = ElementClip(1, 0.0, 0.999, 1, CPU)
    for _ in range(5):
        clip.apply_(torch.ones(1))
    g = torch.tensor([1e6])
    assert clip.apply_(g) == 0
    assert g.item() == 1e6
