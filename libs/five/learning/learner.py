"""The learner: one gradient step after another on one device, alone or as one of many optimizers.

Order of a step (Berner et al. 2019, section 3.2): loss and gradient, average over the optimizers, element-wise clip,
Adam, then the running statistics of observations and rewards.
"""

import logging
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from five.compute import count_flops
from five.config import LearnerConfig
from five.learning.clip import ElementClip
from five.learning.diagnostics import UnrolledPolicy
from five.learning.ppo import Loss, Reduce, ppo_loss
from five.learning.samples import Array, split_batch
from five.schedules import Hyperparameters

log = logging.getLogger(__name__)

_ALIGNMENT = 16  # elements: where a parameter's gradient may begin in the flat vector

_POLICY, _ADAM, _CLIP = "policy/", "adam/", "clip/"


class RunningRewards(Protocol):
    """The running deviation of rewards: `five.model.normaliser.RewardStatistics`."""

    def merge_raw(self, count: float, total: float, squares: float) -> None: ...

    def std(self) -> float: ...


class LearningPolicy(Protocol):
    """What the learner needs of a policy: `five.model.policy.Policy`, or a stand-in."""

    @property
    def rewards(self) -> RunningRewards: ...

    def unroll(self, obs: dict[str, Tensor], actions: Tensor, state: dict[str, Tensor],
               resets: Tensor | None = None) -> UnrolledPolicy: ...

    def update_normaliser(self, moments: Tensor) -> None: ...

    def named_parameters(self) -> Iterator[tuple[str, torch.nn.Parameter]]: ...

    def state_dict(self) -> dict[str, Tensor]: ...

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> Any: ...

    def to(self, device: torch.device) -> Any: ...


class Learner:
    """Owns a policy's optimization.

    Args:
        policy: moved to ``device``; its parameters are changed in place by `step`.
        config: of the loss, Adam and the clip.
        device: "cpu", "cuda", "cuda:0", ...
        reduce: averages each tensor of a list over all optimizers, in place (float32 and float64); every optimizer
            calls it the same number of times with the same shapes. None: there is no other.

    Attributes: ``gradient_steps`` steps tried so far; ``skipped_steps`` those left out because a loss or gradient was
    not finite, ``skip_reason`` why the last one was; ``hold_steps`` steps still to be taken at learning rate 0.
    """

    def __init__(self, policy: LearningPolicy, config: LearnerConfig, device: torch.device | str = "cpu",
                 reduce: Reduce | None = None) -> None:
        self.policy = policy
        self.config = config
        self.device = torch.device(device)
        self.reduce = reduce
        policy.to(self.device)
        self._parameters = dict(policy.named_parameters())
        self._offsets: dict[str, int] = {}
        size = 0
        for name, parameter in self._parameters.items():
            self._offsets[name] = size
            size += -(-parameter.numel() // _ALIGNMENT) * _ALIGNMENT
        # All gradients lie in one vector, so that averaging and clipping are one operation each.
        self._gradient = torch.zeros(size, device=self.device)
        for name, parameter in self._parameters.items():
            parameter.grad = self._part(self._gradient, name)
        self._clip = ElementClip(size, config.gradient_clip, config.gradient_clip_decay,
                                 config.gradient_clip_warmup_steps, self.device)
        self._adam = torch.optim.Adam(
            list(self._parameters.values()), lr=0.0, betas=(config.adam_beta1, config.adam_beta2),
            eps=config.adam_epsilon, fused=config.fused_adam)
        self.gradient_steps = 0
        self.skipped_steps = 0
        self.skip_reason = ""
        self.hold_steps = config.initial_hold_steps
        self._rewards = np.zeros(3)  # number, sum and sum of squares not yet merged

    def allocate(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """A zeroed array for batches: in page-locked memory when the device is a GPU, so that copies overlap."""
        if self.device.type != "cuda":
            return np.zeros(shape, dtype)
        nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        array: Array = torch.zeros(nbytes, dtype=torch.uint8, pin_memory=True).numpy().view(dtype).reshape(shape)
        return array

    def hold(self, steps: int) -> None:
        """Takes the next ``steps`` steps at learning rate 0, while Adam's moments, the clip's and the observations'
        statistics settle: after surgery, or at the start of a run."""
        if steps < 0:
            raise ValueError(f"cannot hold the learning rate for {steps} steps")
        self.hold_steps = steps

    def add_rewards(self, count: float, total: float, squares: float) -> None:
        """Takes in the reward sums of a segment; they are merged into the running deviation at the next step."""
        sums = np.array([count, total, squares], np.float64)
        if not np.isfinite(sums).all() or count < 0 or squares < 0:
            raise ValueError(f"reward sums are not usable: count {count}, sum {total}, squares {squares}")
        self._rewards += sums

    def step(self, batch: Mapping[str, Array | Tensor], hyper: Hyperparameters) -> dict[str, float]:
        """One gradient step.

        Args:
            batch: time first, [T, B, ...], recurrent states ``state/<name>`` [B, ...], as `SampleBuffer.draw` makes
                it; numpy arrays or tensors. It is no longer needed when this returns.
            hyper: learning rate and entropy coefficient of the present version.

        Returns metrics: loss terms, entropy by head, ratio, KL, clip fraction, gradient norm, share of clipped
        gradient elements, explained variance; ``skipped`` is 1 when the step was left out because the loss or a
        gradient was not finite (nothing but the counters has changed then).

        Raises ValueError naming what is wrong with the batch.
        """
        tensors = self._to_device(batch)
        observation, state, learning = split_batch(tensors)
        self._gradient.zero_()
        actions = learning["actions"]
        unrolled = self.policy.unroll(observation, actions, state, learning["resets"])
        loss = ppo_loss(unrolled, learning, self.config, hyper.entropy_coefficient, self.reduce)
        loss.total.backward()  # type: ignore[no-untyped-call]

        moments = unrolled.observation_moments
        shared_loss = loss.total.detach().double().reshape(1)
        rewards = torch.tensor(self._rewards, dtype=torch.float64, device=self.device)
        if self.reduce is not None:
            self.reduce([self._gradient, moments, rewards, shared_loss])
        norm = torch.linalg.vector_norm(self._gradient)
        verdict = torch.stack((shared_loss[0].isfinite(), norm.isfinite(), moments.isfinite().all()))
        self.gradient_steps += 1
        held = self.hold_steps > 0
        self.hold_steps = max(self.hold_steps - 1, 0)
        clipped = torch.zeros((), device=self.device)
        # What is judged has been averaged over the optimizers: all of them skip, or none.
        skipped = not bool(verdict.all())
        if skipped:
            self.skipped_steps += 1
            self.skip_reason = self._why(loss, verdict.tolist())
            log.warning("gradient step %d skipped: %s", self.gradient_steps, self.skip_reason)
        else:
            clipped = self._clip.apply_(self._gradient)
            learning_rate = 0.0 if held else hyper.learning_rate
            for group in self._adam.param_groups:
                group["lr"] = learning_rate
            self._adam.step()
            self.policy.update_normaliser(moments)
            count, total, squares = rewards.tolist()
            if count > 0:
                self.policy.rewards.merge_raw(count, total, squares)
            self._rewards[:] = 0.0
        metrics = {**loss.metrics, "gradient_norm": norm, "gradient_clipped_fraction": clipped}
        values = torch.stack([m.detach().to(torch.float32) for m in metrics.values()]).tolist()
        return {**dict(zip(metrics, values, strict=True)), "skipped": float(skipped), "held": float(held),
                "learning_rate": 0.0 if held else hyper.learning_rate,
                "entropy_coefficient": hyper.entropy_coefficient, "reward_std": self.policy.rewards.std()}

    def flops(self, batch: Mapping[str, Array | Tensor]) -> int:
        """Floating point operations of a gradient step on ``batch``, as `step` takes it: the forward and backward
        passes of this optimizer (`five.compute.count_flops`). They are run to be counted; nothing has changed after."""
        observation, state, learning = split_batch(self._to_device(batch))

        def passes() -> None:
            unrolled = self.policy.unroll(observation, learning["actions"], state, learning["resets"])
            # Where advantages are normalised over all optimizers these alone do: no operation that counts.
            loss = ppo_loss(unrolled, learning, self.config, 0.0, None)
            loss.total.backward()  # type: ignore[no-untyped-call]

        flops = count_flops(passes)
        self._gradient.zero_()
        return flops

    def state_dict(self) -> dict[str, Tensor]:
        """Everything that the next step depends on, as named tensors: ``policy/``, ``adam/`` (m, v and step by
        parameter) and ``clip/`` (second moments by parameter). With `extra`, a checkpoint. Tensors are copies."""
        out = {_POLICY + name: tensor.detach().clone() for name, tensor in self.policy.state_dict().items()}
        for name, parameter in self._parameters.items():
            out[f"{_CLIP}v/{name}"] = self._part(self._clip.v, name).clone()
            for ours, theirs in (("m", "exp_avg"), ("v", "exp_avg_sq"), ("step", "step")):
                if parameter in self._adam.state:
                    out[f"{_ADAM}{ours}/{name}"] = self._adam.state[parameter][theirs].detach().clone()
        return out

    def fingerprint(self) -> int:
        """A number of 48 bits made of all bits of the policy's tensors: equal on optimizers that stayed together."""
        total = 0
        for tensor in self.policy.state_dict().values():
            bits = tensor.detach().contiguous().view(-1).view(torch.uint8 if tensor.element_size() % 4 else torch.int32)
            total += int(bits.sum(dtype=torch.int64))
        return total & (1 << 48) - 1

    def extra(self) -> dict[str, Any]:
        """The counters and the random state that go with `state_dict`, as JSON values."""
        return {
            "gradient_steps": self.gradient_steps, "skipped_steps": self.skipped_steps, "hold_steps": self.hold_steps,
            "clip_steps": self._clip.steps, "pending_rewards": self._rewards.tolist(),
            "torch_rng": torch.get_rng_state().tolist()}

    def load_state_dict(self, state: Mapping[str, Tensor], extra: Mapping[str, Any]) -> None:
        """Goes on from `state_dict` and `extra`: the next step is equal to the bit.

        Raises ValueError naming what is missing, not known, or of another shape; nothing has changed then.
        """
        self._check(state)
        self.policy.load_state_dict(
            {name[len(_POLICY) :]: t for name, t in state.items() if name.startswith(_POLICY)})
        for name, parameter in self._parameters.items():
            self._part(self._clip.v, name).copy_(state[f"{_CLIP}v/{name}"])
            if f"{_ADAM}m/{name}" not in state:
                self._adam.state.pop(parameter, None)
                continue
            # Where Adam itself would put its step counter.
            on = self.device if self.config.fused_adam else torch.device("cpu")
            self._adam.state[parameter] = {
                "step": state[f"{_ADAM}step/{name}"].to(on, torch.float32, copy=True),
                "exp_avg": state[f"{_ADAM}m/{name}"].to(self.device, torch.float32, copy=True),
                "exp_avg_sq": state[f"{_ADAM}v/{name}"].to(self.device, torch.float32, copy=True)}
        self.gradient_steps = int(extra["gradient_steps"])
        self.skipped_steps = int(extra["skipped_steps"])
        self.hold_steps = int(extra["hold_steps"])
        self._clip.steps = int(extra["clip_steps"])
        self._rewards = np.array(extra["pending_rewards"], np.float64)
        torch.set_rng_state(torch.tensor(extra["torch_rng"], dtype=torch.uint8))

    def _part(self, flat: Tensor, name: str) -> Tensor:
        parameter, start = self._parameters[name], self._offsets[name]
        return flat[start : start + parameter.numel()].view(parameter.shape)

    def _check(self, state: Mapping[str, Tensor]) -> None:
        expected = {_POLICY + name: tensor.shape for name, tensor in self.policy.state_dict().items()}
        adam = {f"{_ADAM}{kind}/{name}": p.shape if kind != "step" else torch.Size()
                for name, p in self._parameters.items() for kind in ("m", "v", "step")}
        expected |= {f"{_CLIP}v/{name}": p.shape for name, p in self._parameters.items()}
        if any(name.startswith(_ADAM) for name in state):  # there is none before the first step
            expected |= adam
        missing, unknown = sorted(expected.keys() - state.keys()), sorted(state.keys() - expected.keys())
        if missing or unknown:
            raise ValueError(f"the checkpoint is of another model: it lacks {missing[:5]} and has {unknown[:5]}")
        for name, shape in expected.items():
            if state[name].shape != shape:
                raise ValueError(f"the checkpoint is of another model: {name} is {tuple(state[name].shape)} there "
                                 f"and {tuple(shape)} here")

    def _to_device(self, batch: Mapping[str, Array | Tensor]) -> dict[str, Tensor]:
        out = {}
        for name, array in batch.items():
            tensor = array if isinstance(array, Tensor) else torch.from_numpy(array)
            out[name] = tensor.to(self.device, non_blocking=True)
        missing = {"actions", "behaviour_logp", "advantages", "returns", "mask", "resets", "win_label", "rank_label",
                   "building_label"} - out.keys()
        if missing:
            raise ValueError(f"the batch lacks {sorted(missing)}")
        lead, heroes = out["actions"].shape[:2], out["actions"].shape[2]
        for name in ("behaviour_logp", "advantages", "returns", "mask"):
            if out[name].shape != (*lead, heroes):
                raise ValueError(f"{name} is {tuple(out[name].shape)}, but actions say {(*lead, heroes)}")
        for name, tensor in out.items():
            if not name.startswith("state/") and tensor.shape[:2] != lead:
                raise ValueError(f"{name} is {tuple(tensor.shape)}, but actions say {tuple(lead)} leads every array")
        return out

    def _why(self, loss: Loss, verdict: list[bool]) -> str:
        loss_fine, gradient_fine, moments_fine = verdict
        terms = [name for name, term in loss.terms.items() if not bool(term.isfinite())]
        if terms:
            return f"the loss is not finite: {', '.join(terms)}"
        if not loss_fine:
            return "the loss of another optimizer is not finite"
        if not gradient_fine:
            bad = [name for name in self._parameters if not bool(self._part(self._gradient, name).isfinite().all())]
            return f"the gradient is not finite: {', '.join(bad[:5]) or 'its norm overflows'}"
        assert not moments_fine
        return "the observations are not finite"
