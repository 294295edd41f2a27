
import pytest
import torch

from five.agent import compute
from five.agent.compute import apply_compute_config, count_flops, torch_threads, uses_cuda_graphs
from five.agent.config import ComputeConfig, ModelConfig
from five.agent.learning.learner import Learner
from tests.agent.standins import HYPER, TinyPolicy
from tests.agent.test_learner import CONFIG, batch_of


@pytest.mark.parametrize(("products", "sums"), [("tf32", "bfloat16"), ("float32", "float32")])
def test_precision_flags_follow_the_configuration(products, sums):
    apply_compute_config(ComputeConfig(float32_matmul_precision=products, bfloat16_accumulation=sums))
    assert torch.backends.cuda.matmul.allow_tf32 == torch.backends.cudnn.allow_tf32 == (products == "tf32")
    assert torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction == (sums == "bfloat16")


@pytest.mark.parametrize(("precision", "capabilities", "on_cpu", "on_gpu"), [
    ("float32", {"avx512_bf16": True}, False, False),
    ("bfloat16", {"avx512_bf16": True}, True, True),
    ("bfloat16", {"avx512_bf16": False, "amx_bf16": True}, True, True),
    ("bfloat16", {"avx512_f": True}, False, True)])
def test_a_cpu_without_instructions_for_bfloat16_computes_in_float32(precision, capabilities, on_cpu, on_gpu,
                                                                     monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    monkeypatch.setattr(compute, "_has_bfloat16_products", compute._has_bfloat16_products.__wrapped__)
    config = ModelConfig(precision=precision)
    assert compute.uses_bfloat16(config, torch.device("cpu")) is on_cpu
    assert compute.uses_bfloat16(config, torch.device("cuda")) is on_gpu


@pytest.mark.parametrize(("device", "configured", "own", "captured"), [
    ("cuda", True, {}, True), ("cuda", True, {"here": True}, True), ("cuda", True, {"here": False}, False),
    ("cuda", False, {}, False), ("cuda", False, {"here": True}, False), ("cpu", True, {}, False),
    ("cpu", False, {"here": False}, False)])
def test_cuda_graphs_need_a_gpu_and_both_settings(device, configured, own, captured):
    assert uses_cuda_graphs(torch.device(device), ComputeConfig(cuda_graphs=configured), **own) is captured


def test_thread_count_is_restored():
    before = torch.get_num_threads()
    with pytest.raises(KeyError), torch_threads(before + 1):
        assert torch.get_num_threads() == before + 1
        raise KeyError
    assert torch.get_num_threads() == before


def test_flops_of_a_matrix_product_and_its_gradients(capsys):
    a, w = torch.randn(8, 16), torch.randn(16, 32, requires_grad=True)
    assert count_flops(lambda: a @ w) == 2 * 8 * 16 * 32
    assert count_flops(lambda: (a @ w).sum().backward()) == 2 * 2 * 8 * 16 * 32
    assert capsys.readouterr() == ("", "")


def test_flops_of_the_fused_lstm():
    lstm, x = torch.nn.LSTM(16, 24), torch.randn(5, 3, 16, requires_grad=True)
    cell = 2 * (16 + 24) * 4 * 24 * 5 * 3
    assert count_flops(lambda: lstm(x)) == cell
    assert 2.5 * cell < count_flops(lambda: lstm(x)[0].sum().backward()) <= 3 * cell


def test_flops_of_a_gradient_step():
    """An LSTM cell of I inputs and D units: 2 (I + D) 4D per step and hero, three times with its gradients."""
    learner = Learner(TinyPolicy(features=3, heroes=2, hidden=16), CONFIG)
    batch = batch_of(learner.policy)
    steps, samples = batch["actions"].shape[:2]
    flops = count_flops(lambda: learner.train_step(batch, HYPER))
    cell = 3 * 2 * (7 + 16) * 64 * steps * samples * 2
    assert 0.95 * cell < flops < 1.5 * cell


def test_counting_flops_changes_nothing():
    learner, other = (Learner(TinyPolicy(features=3, heroes=2, hidden=16), CONFIG) for _ in range(2))
    batch = batch_of(learner.policy)
    flops = learner.count_step_flops(batch)
    assert flops == count_flops(lambda: other.train_step(batch, HYPER))
    other = Learner(TinyPolicy(features=3, heroes=2, hidden=16), CONFIG)
    assert learner.train_step(batch, HYPER) == other.train_step(batch, HYPER)
    assert learner.fingerprint() == other.fingerprint()


@pytest.mark.parametrize(("cuda", "message"), [
    (None, r"services.optimizer.device 'cuda:1': .*without CUDA: use the image whose tag ends in -cuda"),
    ("12.8", "services.optimizer.device 'cuda:1': no GPU is visible.*services.optimizer.device=cpu")])
def test_a_missing_gpu_is_refused_with_its_key(cuda, message, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    compute.require_device("cpu", "services.optimizer.device")
    with pytest.raises(ValueError, match=message):
        compute.require_device("cuda:1", "services.optimizer.device")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    compute.require_device("cuda:1", "services.optimizer.device")


def test_more_gpus_than_the_machine_has_are_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    compute.require_device("cuda", "services.optimizer.device", 2)
    with pytest.raises(ValueError, match=r"optimizer.device 'cuda:2': the visible GPUs are cuda:0 to cuda:1"):
        compute.require_device("cuda:2", "services.optimizer.device")
    with pytest.raises(ValueError, match=r"'cuda:1': 2 processes .* a GPU each: set services.optimizer.device=cuda$"):
        compute.require_device("cuda:1", "services.optimizer.device", 2)
    with pytest.raises(ValueError, match=r"optimizer.device 'cuda': 3 processes .* a GPU each \(GPUs visible: 2\)"):
        compute.require_device("cuda", "services.optimizer.device", 3)
