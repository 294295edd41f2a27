"""The learner: one gradient step after another on one device, alone or as one of many optimizers.

Order of a step (Berner et al. 2019, section 3.2): loss and gradient, average over the optimizers, element-wise clip,
Adam, then the running statistics of observations and rewards.
"""

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from five.agent.compute import count_flops
from five.agent.config import LearnerConfig
from five.agent.learning.batch_transfer import BatchTransfer, DeviceBatch
from five.agent.learning.checkpoint import fingerprint_tensors, require_shapes
from five.agent.learning.clip import ElementClip
from five.agent.learning.cuda_graphs import CaptureError, GraphedStep
from five.agent.learning.gradient_buckets import GradientBuckets, StartAllReduce
from five.agent.learning.learning_policy import LearningPolicy
from five.agent.learning.ppo import AllReduce, ppo_loss
from five.agent.learning.samples import Array, check_batch, split_batch
from five.agent.learning.step_metrics import DeviceEvent, StepMetrics, explain_skip
from five.agent.schedules import Hyperparameters

log = logging.getLogger(__name__)

BUCKET_BYTES = 25 << 20
STEPS_AHEAD = 2  # steps that the host may have asked for and the device not finished
_ALIGNMENT = 16  # elements: where a parameter's gradient may begin in the flat vector

_POLICY, _ADAM, _CLIP = "policy/", "adam/", "clip/"


@dataclass(frozen=True)
class _Gradient:
    """What backward leaves beside the gradient itself: the loss's ``terms`` and ``metrics``, and what is averaged over
    the optimizers, ``shared`` float64 [3 F + 4]: the observations' moments [3, F], the reward sums, the total loss."""

    terms: dict[str, Tensor]
    metrics: dict[str, Tensor]
    shared: Tensor


@dataclass(frozen=True)
class _Taken:
    """Of a step that was taken or skipped: ``values`` as of `StepMetrics`, those of ``names`` before its flags;
    ``terms`` of the loss by name."""

    names: list[str]
    terms: list[str]
    values: Tensor


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
        graphs: the policy is made dense, and a GPU records a step once and replays it: with one optimizer all of it,
            else up to the gradient, which is then averaged behind backward. Not where the host has to decide within
            a step (no fused Adam) or optimizers exchange before it (``advantage_scope: all``).

    Attributes: ``gradient_steps`` steps tried so far; ``hold_steps`` steps still to be taken at learning rate 0.
    """

    def __init__(self, policy: LearningPolicy, config: LearnerConfig, device: torch.device | str = "cpu",
                 reduce: AllReduce | None = None, begin: StartAllReduce | None = None, bucket_bytes: int = BUCKET_BYTES,
                 graphs: bool = False) -> None:
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
        fixed = graphs and config.fused_adam and (reduce is None or config.advantage_scope == "rank")
        # What changes from step to step is on the device where a recorded step has to read it.
        self._rate = torch.zeros((), device=self.device) if fixed else None
        self._entropy = torch.zeros((), device=self.device) if fixed else None
        self._adam = torch.optim.Adam(
            list(self._parameters.values()), lr=0.0 if self._rate is None else self._rate,
            betas=(config.adam_beta1, config.adam_beta2), eps=config.adam_epsilon, fused=config.fused_adam,
            capturable=fixed)
        self._adam._warned_capturable_if_run_uncaptured = True  # the first steps are, on purpose
        self._whole: GraphedStep[_Taken] | None = None
        self._half: GraphedStep[_Gradient] | None = None
        if fixed:
            policy.dense = True
            if reduce is None:
                self._whole = GraphedStep(lambda tensors: self._take(self._differentiate(tensors)), self.device)
            else:
                self._half = GraphedStep(self._differentiate, self.device)
        self.gradient_steps = 0
        self.hold_steps = config.initial_hold_steps
        self._ways = BatchTransfer(self.device)
        self._ends: deque[DeviceEvent] = deque(maxlen=STEPS_AHEAD)
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
        if self._flags is None or not self.skipped_steps:
            return ""
        return self._why([flag > 0 for flag in self._flags.tolist()])

    def allocate(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """A zeroed array for batches: in page-locked memory when the device is a GPU, so that copies overlap."""
        return self._ways.allocate(shape, dtype)

    def moment(self) -> DeviceEvent:
        """Now, in the device's work."""
        return DeviceEvent(self.device)

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

    def put(self, batch: Mapping[str, Array | Tensor]) -> DeviceBatch:
        """Begins to bring a batch to the device, on any one thread; `step` takes it.

        Args:
            batch: time first, [T, B, ...], recurrent states ``state/<name>`` [B, ...], as `SampleBuffer.draw` makes
                it; numpy arrays or tensors. It may be filled again when two more batches were put and `settle`d.

        Raises ValueError naming what is wrong with the batch.
        """
        check_batch(batch)
        found = None
        here = all(isinstance(array, np.ndarray) or array.device.type == "cpu" for array in batch.values())
        if here and not self.policy.dense:  # a dense policy has nothing to search for
            tensors = {n: a if isinstance(a, Tensor) else torch.from_numpy(a) for n, a in batch.items()}
            observation, _, learning = split_batch(tensors)
            found = self.policy.find(observation, learning["actions"], learning["resets"])
        return self._ways.begin(batch, found)

    def settle(self) -> None:
        """Waits until the arrays of all batches put but the last may be filled again."""
        self._ways.settle()

    def step(self, batch: DeviceBatch | Mapping[str, Array | Tensor], hyper: Hyperparameters) -> StepMetrics:
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
        if not isinstance(batch, DeviceBatch):
            batch = self.put(batch)
        if len(self._ends) == STEPS_AHEAD:
            self._ends[0].wait()
        began = DeviceEvent(self.device)
        batch.arrive()
        held = self.hold_steps > 0
        learning_rate = 0.0 if held else hyper.learning_rate
        self._set(learning_rate, hyper.entropy_coefficient)
        taken = self._do(batch, hyper.entropy_coefficient)
        batch.leave()
        self.gradient_steps += 1
        self.hold_steps = max(self.hold_steps - 1, 0)
        self._terms = taken.terms
        values = taken.values.clone()  # a replay writes to where the one before it did
        skipped, flags = values[taken.names.index("skipped")] > 0, values[len(taken.names):]
        self._flags = flags if self._flags is None else torch.where(skipped, flags, self._flags)
        known = {"held": float(held), "learning_rate": learning_rate,
                 "entropy_coefficient": hyper.entropy_coefficient}
        ended = DeviceEvent(self.device)
        self._ends.append(ended)
        return StepMetrics(taken.names, values, known, began, ended, self.gradient_steps, self._why)

    def _set(self, learning_rate: float, entropy_coefficient: float) -> None:
        """Puts what the host knows of the next step where the step reads it."""
        if self._rate is None or self._entropy is None:
            for group in self._adam.param_groups:
                group["lr"] = learning_rate
        else:
            self._rate.fill_(learning_rate)
            self._entropy.fill_(entropy_coefficient)
        for i, value in enumerate(self._rewards.tolist()):
            self._unmerged[i] += value
        self._rewards[:] = 0.0

    def _do(self, batch: DeviceBatch, entropy_coefficient: float) -> _Taken:
        """The device's part of a step, recorded where it can be."""
        try:
            if self._whole is not None:
                return self._whole(batch.tensors)
            if self._half is not None:
                gradient = self._half(batch.tensors)
                self._average(gradient.shared)
                return self._take(gradient)
        except CaptureError as error:
            log.warning("gradient steps are not replayed as a CUDA graph but asked for kernel by kernel, which is "
                        "slower (services.optimizer.cuda_graphs: false does so from the start): %s", error)
            self._whole = self._half = None
            self.policy.dense = False
        if self._buckets is not None:
            self._buckets.arm()
        gradient = self._differentiate(batch.tensors, batch.found, entropy_coefficient)
        self._average(gradient.shared)
        return self._take(gradient)

    def _differentiate(self, tensors: Mapping[str, Tensor], found: Any = None, entropy_coefficient: float | None = None
                       ) -> _Gradient:
        """The loss of a batch, and its gradient in ``_gradient``; the entropy's coefficient where none is given is the
        tensor's. Raises CannotRecord where a step that is to be recorded takes more memory than there is."""
        observation, state, learning = split_batch(tensors)
        coefficient = self._entropy if entropy_coefficient is None else entropy_coefficient
        assert coefficient is not None
        self._gradient.zero_()
        try:
            unrolled = self.policy.unroll(observation, learning["actions"], state, learning["resets"], found)
            loss = ppo_loss(unrolled, learning, self.config, coefficient, self.reduce)
            loss.total.backward()  # type: ignore[no-untyped-call]
        except torch.OutOfMemoryError as error:
            if self._whole is None and self._half is None:
                raise
            raise CaptureError(f"all slots of a batch take more memory than there is: {error}") from error
        total = loss.total.detach().double().reshape(1)
        return _Gradient({name: term.detach() for name, term in loss.terms.items()}, loss.metrics,
                         torch.cat((unrolled.observation_moments.flatten(), self._unmerged, total)))

    def _average(self, shared: Tensor) -> None:
        """Over the optimizers: the gradient, as far as it was not while backward went on, and ``shared``."""
        if self._buckets is not None:
            self._buckets.finish()
        if self.reduce is not None:
            self.reduce([shared] if self._buckets is not None else [self._gradient, shared])

    def _take(self, gradient: _Gradient) -> _Taken:
        """Changes parameters and statistics where the loss and the gradient are finite, decided on the device;
        nothing but the count of skipped steps otherwise."""
        shared, terms = gradient.shared, gradient.terms
        moments, rewards, total = shared[:-4].view(3, -1), shared[-4:-1], shared[-1]
        norms = torch.stack(torch._foreach_norm([p.grad for p in self._parameters.values() if p.grad is not None]))
        norm = torch.linalg.vector_norm(norms)
        moments_fine = moments.isfinite().all()
        # What is judged has been averaged over the optimizers: all of them skip, or none.
        fine = total.isfinite() & norm.isfinite() & moments_fine
        flags = torch.cat((torch.stack([*terms.values()]).isfinite(), torch.stack((total.isfinite(), moments_fine)),
                           norms.isfinite()))
        self._gradient.masked_fill_(~fine, 0.0)
        clipped = self._clip.apply_(self._gradient, fine)
        if self.config.fused_adam:
            self._adam.found_inf = (~fine).float()  # type: ignore[attr-defined]
            self._adam.step()
        elif bool(fine):
            self._adam.step()
        self.policy.update_normaliser(torch.where(fine, moments, 0.0))
        self.policy.rewards.merge_sums(torch.where(fine & (rewards[0] > 0), rewards, 0.0))
        self._unmerged.masked_fill_(fine, 0.0)
        self._skipped += ~fine
        metrics = {**gradient.metrics, "gradient_norm": norm, "gradient_clipped_fraction": clipped, "skipped": ~fine,
                   "reward_std": self.policy.rewards.deviation()}
        values = torch.cat((torch.stack([m.detach().to(torch.float32) for m in metrics.values()]), flags.float()))
        return _Taken(list(metrics), list(terms), values)

    def flops(self, batch: DeviceBatch | Mapping[str, Array | Tensor]) -> int:
        """Floating point operations of a gradient step on ``batch``, as `step` takes it: the forward and backward
        passes of this optimizer (`five.agent.compute.count_flops`). They are run to be counted; nothing changes. What
        a dense policy computes of absent rows does not count: it is no work that anybody asked for."""
        there = batch if isinstance(batch, DeviceBatch) else self.put(batch)
        there.arrive()
        observation, state, learning = split_batch(there.tensors)

        def passes() -> None:
            unrolled = self.policy.unroll(observation, learning["actions"], state, learning["resets"], there.found)
            # Where advantages are normalised over all optimizers these alone do: no operation that counts.
            loss = ppo_loss(unrolled, learning, self.config, 0.0, None)
            loss.total.backward()  # type: ignore[no-untyped-call]

        dense, self.policy.dense = self.policy.dense, False
        try:
            flops = count_flops(passes)
        finally:
            self.policy.dense = dense
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
        """`fingerprint` of the policy: equal on optimizers that stayed together."""
        return fingerprint_tensors(self.policy.state_dict().values())

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
        for graphs in (self._whole, self._half):
            if graphs is not None:
                graphs.forget()  # Adam's moments will be other tensors
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
        require_shapes(state, expected)

    def _why(self, flags: Sequence[bool]) -> str:
        return explain_skip(self._terms, list(self._parameters), flags)
