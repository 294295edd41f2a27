"""The learner: one gradient step after another on one device, alone or as one of many optimizers.

Order of a step (Berner et al. 2019, section 3.2): loss and gradient, average over the optimizers, element-wise clip,
Adam, then the running statistics of observations and rewards.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from five.agent.compute import count_flops
from five.agent.config import LearnerConfig
from five.agent.learning.buckets import Begin, GradientBuckets
from five.agent.learning.clip import ElementClip
from five.agent.learning.diagnostics import UnrolledPolicy
from five.agent.learning.ppo import Loss, Reduce, ppo_loss
from five.agent.learning.samples import Array, split_batch
from five.agent.learning.step_metrics import Moment, StepMetrics
from five.agent.learning.to_device import Batch, ToDevice
from five.agent.schedules import Hyperparameters

BUCKET_BYTES = 25 << 20
STEPS_AHEAD = 2  # steps that the host may have asked for and the device not finished
_ALIGNMENT = 16  # elements: where a parameter's gradient may begin in the flat vector

_POLICY, _ADAM, _CLIP = "policy/", "adam/", "clip/"


class RunningRewards(Protocol):
    """The running deviation of rewards: `five.agent.model.normaliser.RewardStatistics`."""

    def merge_sums(self, sums: Tensor) -> None: ...

    def deviation(self) -> Tensor: ...

    def std(self) -> float: ...


class LearningPolicy(Protocol):
    """What the learner needs of a policy: `five.agent.model.policy.Policy`, or a stand-in."""

    @property
    def rewards(self) -> RunningRewards: ...

    def find(self, obs: dict[str, Tensor], actions: Tensor, resets: Tensor) -> Any: ...

    def unroll(self, obs: dict[str, Tensor], actions: Tensor, state: dict[str, Tensor],
               resets: Tensor | None = None, found: Any = None) -> UnrolledPolicy: ...

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
        begin: begins to average a tensor over all optimizers: gradients then go in buckets of ``bucket_bytes`` while
            backward goes on, and only what is small through ``reduce``.

    Attributes: ``gradient_steps`` steps tried so far; ``hold_steps`` steps still to be taken at learning rate 0.
    """

    def __init__(self, policy: LearningPolicy, config: LearnerConfig, device: torch.device | str = "cpu",
                 reduce: Reduce | None = None, begin: Begin | None = None, bucket_bytes: int = BUCKET_BYTES) -> None:
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
        places = [(parameter, self._offsets[name], self._offsets[name] + parameter.numel())
                  for name, parameter in self._parameters.items()]
        self._buckets = None if begin is None else GradientBuckets(self._gradient, places, begin, bucket_bytes)
        self._clip = ElementClip(size, config.gradient_clip, config.gradient_clip_decay,
                                 config.gradient_clip_warmup_steps, self.device)
        self._adam = torch.optim.Adam(
            list(self._parameters.values()), lr=0.0, betas=(config.adam_beta1, config.adam_beta2),
            eps=config.adam_epsilon, fused=config.fused_adam)
        self.gradient_steps = 0
        self.hold_steps = config.initial_hold_steps
        self._ways = ToDevice(self.device)
        self._ends: deque[Moment] = deque(maxlen=STEPS_AHEAD)
        self._skipped = torch.zeros((), dtype=torch.int64, device=self.device)
        self._flags: Tensor | None = None  # of the last step that was skipped
        self._terms: list[str] = []
        self._rewards = np.zeros(3)  # number, sum and sum of squares that came in since the last step
        self._unmerged = torch.zeros(3, dtype=torch.float64, device=self.device)  # ... and before, in steps skipped

    @property
    def skipped_steps(self) -> int:
        """Steps left out because a loss or gradient was not finite. On a GPU the host waits for the answer."""
        return int(self._skipped)

    @property
    def skip_reason(self) -> str:
        """Why the last one was; empty while there was none."""
        return "" if self._flags is None or not self.skipped_steps else self._why(self._flags.tolist())

    def allocate(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """A zeroed array for batches: in page-locked memory when the device is a GPU, so that copies overlap."""
        if self.device.type != "cuda":
            return np.zeros(shape, dtype)
        nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        array: Array = torch.zeros(nbytes, dtype=torch.uint8, pin_memory=True).numpy().view(dtype).reshape(shape)
        return array

    def moment(self) -> Moment:
        """Now, in the device's work."""
        return Moment(self.device)

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

    def put(self, batch: Mapping[str, Array | Tensor]) -> Batch:
        """Begins to bring a batch to the device, on any one thread; `step` takes it.

        Args:
            batch: time first, [T, B, ...], recurrent states ``state/<name>`` [B, ...], as `SampleBuffer.draw` makes
                it; numpy arrays or tensors. It may be filled again when two more batches were put and `settle`d.

        Raises ValueError naming what is wrong with the batch.
        """
        _check_batch(batch)
        found = None
        if all(isinstance(array, np.ndarray) or array.device.type == "cpu" for array in batch.values()):
            tensors = {n: a if isinstance(a, Tensor) else torch.from_numpy(a) for n, a in batch.items()}
            observation, _, learning = split_batch(tensors)
            found = self.policy.find(observation, learning["actions"], learning["resets"])
        return self._ways.begin(batch, found)

    def settle(self) -> None:
        """Waits until the arrays of all batches put but the last may be filled again."""
        self._ways.settle()

    def step(self, batch: Batch | Mapping[str, Array | Tensor], hyper: Hyperparameters) -> StepMetrics:
        """One gradient step. On a GPU the host asks for the work and goes on: it never waits for the step that it
        asked for, only, at the next one, for the step before it.

        Args:
            batch: what `put` made, or what it takes; it is no longer needed when the step is over.
            hyper: learning rate and entropy coefficient of the present version.

        Returns metrics: loss terms, entropy by head, ratio, KL, clip fraction, gradient norm, share of clipped
        gradient elements, explained variance; ``skipped`` is 1 when the step was left out because the loss or a
        gradient was not finite (nothing but the counters has changed then).

        Raises ValueError naming what is wrong with the batch.
        """
        if not isinstance(batch, Batch):
            batch = self.put(batch)
        if len(self._ends) == STEPS_AHEAD:
            self._ends[0].wait()
        began = Moment(self.device)
        batch.arrive()
        loss, shared = self._differentiate(batch, hyper)
        batch.leave()
        moments, rewards, total = shared[:-4].view(3, -1), shared[-4:-1], shared[-1]
        norms = torch.stack(torch._foreach_norm([p.grad for p in self._parameters.values() if p.grad is not None]))
        norm = torch.linalg.vector_norm(norms)
        moments_fine = moments.isfinite().all()
        # What is judged has been averaged over the optimizers: all of them skip, or none.
        fine = total.isfinite() & norm.isfinite() & moments_fine
        self._terms = list(loss.terms)
        flags = torch.cat((torch.stack([*loss.terms.values()]).isfinite(),
                           torch.stack((total.isfinite(), moments_fine)), norms.isfinite()))
        self.gradient_steps += 1
        held = self.hold_steps > 0
        self.hold_steps = max(self.hold_steps - 1, 0)
        learning_rate = 0.0 if held else hyper.learning_rate
        clipped = self._take(fine, moments, rewards, learning_rate)
        self._skipped += ~fine
        self._flags = flags if self._flags is None else torch.where(fine, self._flags, flags)
        metrics = {**loss.metrics, "gradient_norm": norm, "gradient_clipped_fraction": clipped, "skipped": ~fine,
                   "reward_std": self.policy.rewards.deviation()}
        values = torch.cat((torch.stack([m.detach().to(torch.float32) for m in metrics.values()]), flags.float()))
        known = {"held": float(held), "learning_rate": learning_rate,
                 "entropy_coefficient": hyper.entropy_coefficient}
        ended = Moment(self.device)
        self._ends.append(ended)
        return StepMetrics(list(metrics), values, known, began, ended, self.gradient_steps, self._why)

    def _differentiate(self, batch: Batch, hyper: Hyperparameters) -> tuple[Loss, Tensor]:
        """The loss, its gradient averaged over the optimizers, and what else is averaged: float64 [3 F + 4], the
        observations' moments [3, F], the reward sums and the total loss."""
        observation, state, learning = split_batch(batch.tensors)
        self._gradient.zero_()
        unrolled = self.policy.unroll(observation, learning["actions"], state, learning["resets"], batch.found)
        loss = ppo_loss(unrolled, learning, self.config, hyper.entropy_coefficient, self.reduce)
        if self._buckets is not None:
            self._buckets.arm()
        loss.total.backward()  # type: ignore[no-untyped-call]
        for i, value in enumerate(self._rewards.tolist()):
            self._unmerged[i] += value
        self._rewards[:] = 0.0
        shared = torch.cat((unrolled.observation_moments.flatten(), self._unmerged,
                            loss.total.detach().double().reshape(1)))
        if self._buckets is not None:
            self._buckets.finish()
        if self.reduce is not None:
            self.reduce([shared] if self._buckets is not None else [self._gradient, shared])
        return loss, shared

    def _take(self, fine: Tensor, moments: Tensor, rewards: Tensor, learning_rate: float) -> Tensor:
        """Changes parameters and statistics where ``fine`` bool [] holds, decided on the device; nothing otherwise.
        Returns the share of gradient elements that were clipped."""
        self._gradient.masked_fill_(~fine, 0.0)
        clipped = self._clip.apply_(self._gradient, fine)
        for group in self._adam.param_groups:
            group["lr"] = learning_rate
        if self.config.fused_adam:
            self._adam.found_inf = (~fine).float()  # type: ignore[attr-defined]
            self._adam.step()
        elif bool(fine):
            self._adam.step()
        self.policy.update_normaliser(torch.where(fine, moments, 0.0))
        self.policy.rewards.merge_sums(torch.where(fine & (rewards[0] > 0), rewards, 0.0))
        self._unmerged.masked_fill_(fine, 0.0)
        return clipped

    def flops(self, batch: Batch | Mapping[str, Array | Tensor]) -> int:
        """Floating point operations of a gradient step on ``batch``, as `step` takes it: the forward and backward
        passes of this optimizer (`five.agent.compute.count_flops`). They are run to be counted; nothing changes."""
        there = batch if isinstance(batch, Batch) else self.put(batch)
        there.arrive()
        observation, state, learning = split_batch(there.tensors)

        def passes() -> None:
            unrolled = self.policy.unroll(observation, learning["actions"], state, learning["resets"], there.found)
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
        sums = []
        for tensor in self.policy.state_dict().values():
            bits = tensor.detach().contiguous().view(-1).view(torch.uint8 if tensor.element_size() % 4 else torch.int32)
            sums.append(bits.sum(dtype=torch.int64))
        return int(sum(torch.stack(sums).tolist())) & (1 << 48) - 1

    def extra(self) -> dict[str, Any]:
        """The counters and the random state that go with `state_dict`, as JSON values."""
        return {
            "gradient_steps": self.gradient_steps, "skipped_steps": self.skipped_steps, "hold_steps": self.hold_steps,
            "clip_steps": self._clip.steps, "pending_rewards": (self._unmerged.cpu().numpy() + self._rewards).tolist(),
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
        self._skipped.fill_(int(extra["skipped_steps"]))
        self.hold_steps = int(extra["hold_steps"])
        self._clip.steps = int(extra["clip_steps"])
        self._rewards = np.array(extra["pending_rewards"], np.float64)
        self._unmerged.zero_()
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

    def _why(self, flags: Sequence[bool]) -> str:
        """Why a step was skipped: ``flags`` say what of it was finite, as `step` puts them together."""
        terms = dict(zip(self._terms, flags, strict=False))
        loss_fine, moments_fine = flags[len(terms)], flags[len(terms) + 1]
        gradients = dict(zip(self._parameters, flags[len(terms) + 2:], strict=True))
        if bad := [name for name, fine in terms.items() if not fine]:
            return f"the loss is not finite: {', '.join(bad)}"
        if not loss_fine:
            return "the loss of another optimizer is not finite"
        if bad := [name for name, fine in gradients.items() if not fine]:
            return f"the gradient is not finite: {', '.join(bad[:5])}"
        if not moments_fine:
            return "the observations are not finite"
        return "the gradient's norm is not finite: it overflows"


def _check_batch(batch: Mapping[str, Array | Tensor]) -> None:
    """Raises ValueError naming what is missing, or does not fit to the actions' shape."""
    missing = {"actions", "behaviour_logp", "advantages", "returns", "mask", "resets", "win_label", "rank_label",
               "building_label"} - batch.keys()
    if missing:
        raise ValueError(f"the batch lacks {sorted(missing)}")
    lead, heroes = tuple(batch["actions"].shape[:2]), batch["actions"].shape[2]
    for name in ("behaviour_logp", "advantages", "returns", "mask"):
        if tuple(batch[name].shape) != (*lead, heroes):
            raise ValueError(f"{name} is {tuple(batch[name].shape)}, but actions say {(*lead, heroes)}")
    for name, array in batch.items():
        if not name.startswith("state/") and tuple(array.shape[:2]) != lead:
            raise ValueError(f"{name} is {tuple(array.shape)}, but actions say {lead} leads every array")
