"""The learner, which runs gradient steps on one device, alone or as one of many optimizers.

A step computes loss and gradient, averages them over the optimizers, clips each gradient element, applies Adam, and
updates the running statistics of observations and rewards (Berner et al. 2019, section 3.2).
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
from five.agent.learning.checkpoint import ADAM_PREFIX, CLIP_PREFIX, POLICY_PREFIX, checksum, require_checkpoint
from five.agent.learning.clip import ElementClip
from five.agent.learning.cuda_graphs import CaptureError, GraphedStep
from five.agent.learning.flat_gradient import FlatGradient
from five.agent.learning.gradient_buckets import GradientBuckets, StartAllReduce
from five.agent.learning.learning_policy import LearningPolicy
from five.agent.learning.ppo import AllReduce, ppo_loss
from five.agent.learning.samples import Array, check_batch, split_batch
from five.agent.learning.step_metrics import DeviceEvent, StepMetrics, explain_skip
from five.agent.schedules import Hyperparameters

log = logging.getLogger(__name__)

BUCKET_BYTES = 25 << 20
MAX_STEPS_IN_FLIGHT = 2  # steps that the host has launched and the device has not finished


@dataclass(frozen=True)
class _GradientResult:
    """Outputs of the backward pass other than the gradient.

    ``terms`` and ``metrics`` come from the loss. ``shared`` float64 [3 F + 4] is averaged over the optimizers: the
    observation moments [3, F], the three reward sums, and the total loss.
    """

    terms: dict[str, Tensor]
    metrics: dict[str, Tensor]
    shared: Tensor


@dataclass(frozen=True)
class _StepResult:
    """Result of a step, applied or skipped.

    ``values`` holds the metrics called ``names``, then the flags of `StepMetrics`. ``terms`` names the loss terms.
    """

    names: list[str]
    terms: list[str]
    values: Tensor


class Learner:
    """Optimizer loop of one policy: parameters, Adam, gradient clip and running statistics.

    Args:
        policy: moved to ``device``; `train_step` changes its parameters in place.
        config: settings of the loss, Adam and the clip.
        device: "cpu", "cuda", "cuda:0", ...
        all_reduce: averages each tensor of a list over all optimizers in place (float32 and float64). Every optimizer
            calls it the same number of times with the same shapes. None if there is one optimizer.
        start_all_reduce: starts to average a tensor over all optimizers. If given, gradients are averaged in buckets of
            ``bucket_bytes`` during the backward pass, and ``all_reduce`` averages only the other tensors.
        graphs: make the policy dense and capture a step as a CUDA graph. With one optimizer the graph holds the whole
            step, otherwise forward and backward, and gradients are averaged after it. Ignored if the host has to
            decide within a step (no fused Adam) or optimizers exchange data before it (``advantage_scope: all``).

    Attributes:
        gradient_steps: number of steps so far, skipped ones included.
        hold_steps: number of remaining steps at learning rate 0, in which Adam's moments, the clip's second moment and
            the observation statistics settle: at the start of a run and after surgery.
    """

    def __init__(self, policy: LearningPolicy, config: LearnerConfig, device: torch.device | str = "cpu",
                 all_reduce: AllReduce | None = None, start_all_reduce: StartAllReduce | None = None,
                 bucket_bytes: int = BUCKET_BYTES, graphs: bool = False) -> None:
        self.policy = policy
        self.config = config
        self.device = torch.device(device)
        self.all_reduce = all_reduce
        policy.to(self.device)
        self._parameters = dict(policy.named_parameters())
        self._flat = FlatGradient(self._parameters, self.device)
        self._gradient = self._flat.vector
        self._buckets = None
        if start_all_reduce is not None:
            self._buckets = GradientBuckets(self._gradient, self._flat.spans(), start_all_reduce, bucket_bytes)
        self._clip = ElementClip(self._gradient.numel(), config.gradient_clip, config.gradient_clip_decay,
                                 config.gradient_clip_warmup_steps, self.device)
        capturable = graphs and config.fused_adam and (all_reduce is None or config.advantage_scope == "rank")
        # A captured step reads its inputs from device memory.
        self._learning_rate = torch.zeros((), device=self.device) if capturable else None
        self._entropy_coefficient = torch.zeros((), device=self.device) if capturable else None
        self._adam = torch.optim.Adam(
            list(self._parameters.values()), lr=0.0 if self._learning_rate is None else self._learning_rate,
            betas=(config.adam_beta1, config.adam_beta2), eps=config.adam_epsilon, fused=config.fused_adam,
            capturable=capturable)
        self._adam._warned_capturable_if_run_uncaptured = True  # the warm-up steps are not captured, on purpose
        self._step_graph: GraphedStep[_StepResult] | None = None
        self._gradient_graph: GraphedStep[_GradientResult] | None = None
        if capturable:
            policy.dense = True
            if all_reduce is None:
                self._step_graph = GraphedStep(
                    lambda tensors: self._apply_gradient(self._forward_backward(tensors)), self.device)
            else:
                self._gradient_graph = GraphedStep(self._forward_backward, self.device)
        self.gradient_steps = 0
        self.hold_steps = config.initial_hold_steps
        self._transfers = BatchTransfer(self.device)
        self._step_ends: deque[DeviceEvent] = deque(maxlen=MAX_STEPS_IN_FLIGHT)
        self._skipped_steps = torch.zeros((), dtype=torch.int64, device=self.device)
        self._skip_flags: Tensor | None = None  # of the last skipped step, once a step was skipped
        self._restored_skips = 0  # skipped steps of the loaded checkpoint, which stores no reasons
        self._term_names: list[str] = []
        self._pending_rewards = np.zeros(3)  # count, sum and sum of squares since the last step
        self._device_rewards = torch.zeros(3, dtype=torch.float64, device=self.device)  # plus those of skipped steps

    @property
    def skipped_steps(self) -> int:
        """Number of steps skipped because the loss or a gradient was not finite. Waits for the device."""
        return int(self._skipped_steps)

    @property
    def skip_reason(self) -> str:
        """Reason of the last skipped step; empty if none was skipped since the checkpoint was loaded."""
        if self._skip_flags is None or self.skipped_steps == self._restored_skips:
            return ""
        return self._explain_skip([flag > 0 for flag in self._skip_flags.tolist()])

    def allocate(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Return a zeroed array for batches, in page-locked memory if the device is a GPU."""
        return self._transfers.allocate(shape, dtype)

    def record_event(self) -> DeviceEvent:
        """Record an event at the present point of the device's work."""
        return DeviceEvent(self.device)

    def add_rewards(self, count: float, total: float, squares: float) -> None:
        """Add the reward sums of a segment. The next step merges them into the running deviation."""
        sums = np.array([count, total, squares], np.float64)
        if not np.isfinite(sums).all() or count < 0 or squares < 0:
            raise ValueError(f"reward sums must be finite, count and squares at least 0: "
                             f"count {count}, sum {total}, squares {squares}")
        self._pending_rewards += sums

    def transfer(self, batch: Mapping[str, Array | Tensor]) -> DeviceBatch:
        """Start to copy a batch to the device and return it for `train_step`. Call it on one thread only.

        Args:
            batch: numpy arrays or tensors, time first, [T, B, ...], recurrent states ``state/<name>`` [B, ...], as
                `SampleBuffer.sample` returns them. They may be overwritten after two more transfers and
                `wait_for_transfers`.

        Raise ValueError naming the array that is missing or has a wrong shape.
        """
        check_batch(batch)
        index = None
        on_host = all(isinstance(array, np.ndarray) or array.device.type == "cpu" for array in batch.values())
        if on_host and not self.policy.dense:  # a dense policy computes all rows
            tensors = {n: a if isinstance(a, Tensor) else torch.from_numpy(a) for n, a in batch.items()}
            observation, _, learning = split_batch(tensors)
            index = self.policy.index_batch(observation, learning["actions"], learning["resets"])
        return self._transfers.start(batch, index)

    def wait_for_transfers(self) -> None:
        """Wait until the arrays of every transferred batch except the last may be overwritten."""
        self._transfers.wait()

    def train_step(self, batch: DeviceBatch | Mapping[str, Array | Tensor], hyper: Hyperparameters) -> StepMetrics:
        """Run one gradient step.

        On a GPU the host launches the step and returns. It waits only for the step before the previous one.

        Args:
            batch: result or argument of `transfer`.
            hyper: learning rate and entropy coefficient of the present version.

        Returns metrics: loss terms, entropy by head, ratio, KL, clip fraction, gradient norm, share of clipped
        gradient elements, explained variance. ``skipped`` is 1 if the loss or a gradient was not finite. Such a step
        changes nothing but the counters.

        Raise ValueError as `transfer` does.
        """
        if not isinstance(batch, DeviceBatch):
            batch = self.transfer(batch)
        if len(self._step_ends) == MAX_STEPS_IN_FLIGHT:
            self._step_ends[0].wait()
        start = DeviceEvent(self.device)
        batch.acquire()
        held = self.hold_steps > 0
        learning_rate = 0.0 if held else hyper.learning_rate
        self._write_inputs(learning_rate, hyper.entropy_coefficient)
        result = self._run_step(batch, hyper.entropy_coefficient)
        batch.release()
        self.gradient_steps += 1
        self.hold_steps = max(self.hold_steps - 1, 0)
        self._term_names = result.terms
        values = result.values.clone()  # the next replay overwrites it
        skipped, flags = values[result.names.index("skipped")] > 0, values[len(result.names):]
        self._skip_flags = flags if self._skip_flags is None else torch.where(skipped, flags, self._skip_flags)
        known = {"held": float(held), "learning_rate": learning_rate,
                 "entropy_coefficient": hyper.entropy_coefficient}
        end = DeviceEvent(self.device)
        self._step_ends.append(end)
        return StepMetrics(result.names, values, known, start, end, self.gradient_steps, self._explain_skip)

    def _write_inputs(self, learning_rate: float, entropy_coefficient: float) -> None:
        """Write the host's inputs of the next step to where the step reads them."""
        if self._learning_rate is None or self._entropy_coefficient is None:
            for group in self._adam.param_groups:
                group["lr"] = learning_rate
        else:
            self._learning_rate.fill_(learning_rate)
            self._entropy_coefficient.fill_(entropy_coefficient)
        for i, value in enumerate(self._pending_rewards.tolist()):
            self._device_rewards[i] += value
        self._pending_rewards[:] = 0.0

    def _run_step(self, batch: DeviceBatch, entropy_coefficient: float) -> _StepResult:
        """Run the device's part of a step, as a CUDA graph if possible."""
        try:
            if self._step_graph is not None:
                return self._step_graph(batch.tensors)
            if self._gradient_graph is not None:
                gradient = self._gradient_graph(batch.tensors)
                self._all_reduce_gradients(gradient.shared)
                return self._apply_gradient(gradient)
        except CaptureError as error:
            log.warning("gradient steps run without CUDA graphs, which is slower (disable the attempt by "
                        "services.optimizer.cuda_graphs=false): %s", error)
            self._step_graph = self._gradient_graph = None
            self.policy.dense = False
        if self._buckets is not None:
            self._buckets.prepare_for_backward()
        gradient = self._forward_backward(batch.tensors, batch.index, entropy_coefficient)
        self._all_reduce_gradients(gradient.shared)
        return self._apply_gradient(gradient)

    def _forward_backward(self, tensors: Mapping[str, Tensor], index: Any = None,
                          entropy_coefficient: float | None = None) -> _GradientResult:
        """Compute the loss of a batch, and its gradient into ``_gradient``.

        Without ``entropy_coefficient`` the device's tensor is used. Raise CaptureError if a step to be captured does
        not fit into memory.
        """
        observation, state, learning = split_batch(tensors)
        coefficient = self._entropy_coefficient if entropy_coefficient is None else entropy_coefficient
        assert coefficient is not None
        self._gradient.zero_()
        try:
            unrolled = self.policy.unroll(observation, learning["actions"], state, learning["resets"], index)
            loss = ppo_loss(unrolled, learning, self.config, coefficient, self.all_reduce)
            loss.total.backward()  # type: ignore[no-untyped-call]
        except torch.OutOfMemoryError as error:
            if self._step_graph is None and self._gradient_graph is None:
                raise
            raise CaptureError(f"a batch with all slots does not fit into memory: {error}") from error
        total = loss.total.detach().double().reshape(1)
        return _GradientResult({name: term.detach() for name, term in loss.terms.items()}, loss.metrics,
                               torch.cat((unrolled.observation_moments.flatten(), self._device_rewards, total)))

    def _all_reduce_gradients(self, shared: Tensor) -> None:
        """Average ``shared`` and the rest of the gradient over the optimizers."""
        if self._buckets is not None:
            self._buckets.finish_all_reduce()
        if self.all_reduce is not None:
            self.all_reduce([shared] if self._buckets is not None else [self._gradient, shared])

    def _apply_gradient(self, gradient: _GradientResult) -> _StepResult:
        """Update parameters and statistics if loss and gradient are finite, otherwise count a skipped step.

        The decision is made on the device.
        """
        shared, terms = gradient.shared, gradient.terms
        moments, rewards, total = shared[:-4].view(3, -1), shared[-4:-1], shared[-1]
        norms = torch.stack(torch._foreach_norm([p.grad for p in self._parameters.values() if p.grad is not None]))
        norm = torch.linalg.vector_norm(norms)
        moments_finite = moments.isfinite().all()
        # These values are averages over the optimizers, so all optimizers skip or none.
        finite = total.isfinite() & norm.isfinite() & moments_finite
        flags = torch.cat((torch.stack([*terms.values()]).isfinite(), torch.stack((total.isfinite(), moments_finite)),
                           norms.isfinite()))
        self._gradient.masked_fill_(~finite, 0.0)
        clipped = self._clip.apply_(self._gradient, finite)
        if self.config.fused_adam:
            self._adam.found_inf = (~finite).float()  # type: ignore[attr-defined]
            self._adam.step()
        elif bool(finite):
            self._adam.step()
        self.policy.update_normaliser(torch.where(finite, moments, 0.0))
        self.policy.rewards.merge_sums(torch.where(finite & (rewards[0] > 0), rewards, 0.0))
        self._device_rewards.masked_fill_(finite, 0.0)
        self._skipped_steps += ~finite
        metrics = {**gradient.metrics, "gradient_norm": norm, "gradient_clipped_fraction": clipped, "skipped": ~finite,
                   "reward_std": self.policy.rewards.deviation()}
        values = torch.cat((torch.stack([m.detach().to(torch.float32) for m in metrics.values()]), flags.float()))
        return _StepResult(list(metrics), list(terms), values)

    def count_step_flops(self, batch: DeviceBatch | Mapping[str, Array | Tensor]) -> int:
        """Return the floating point operations of the forward and backward pass on ``batch``.

        The passes run to be counted (`five.agent.compute.count_flops`) and change nothing. Rows of absent units, which
        a dense policy computes as well, do not count; rows that fill up a matrix (`packed_mlp.filled_up`) do.
        """
        there = batch if isinstance(batch, DeviceBatch) else self.transfer(batch)
        there.acquire()
        observation, state, learning = split_batch(there.tensors)

        def passes() -> None:
            unrolled = self.policy.unroll(observation, learning["actions"], state, learning["resets"], there.index)
            # Normalising advantages over the optimizers adds no operation that counts.
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
        """Return copies of all tensors that the next step depends on.

        The prefixes are ``policy/``, ``adam/`` (m, v and step by parameter) and ``clip/`` (second moments by
        parameter). Together with `extra` they form a checkpoint.
        """
        out = {POLICY_PREFIX + name: tensor.detach().clone() for name, tensor in self.policy.state_dict().items()}
        for name, parameter in self._parameters.items():
            out[f"{CLIP_PREFIX}v/{name}"] = self._flat.view(self._clip.v, name).clone()
            for ours, theirs in (("m", "exp_avg"), ("v", "exp_avg_sq"), ("step", "step")):
                if parameter in self._adam.state:
                    out[f"{ADAM_PREFIX}{ours}/{name}"] = self._adam.state[parameter][theirs].detach().clone()
        return out

    def fingerprint(self) -> int:
        """Return a checksum of the policy, which is equal on all optimizers that are in sync."""
        return checksum(self.policy.state_dict().values())

    def extra(self) -> dict[str, Any]:
        """Return the counters and the random state of a checkpoint as JSON values."""
        return {
            "gradient_steps": self.gradient_steps, "skipped_steps": self.skipped_steps, "hold_steps": self.hold_steps,
            "clip_steps": self._clip.steps,
            "pending_rewards": (self._device_rewards.cpu().numpy() + self._pending_rewards).tolist(),
            "torch_rng": torch.get_rng_state().tolist()}

    def load_state_dict(self, state: Mapping[str, Tensor], extra: Mapping[str, Any]) -> None:
        """Restore `state_dict` and `extra`, so that the next step is bit-identical.

        Raise ValueError naming tensors that are missing, unknown or of another shape. Nothing changes in that case.
        """
        require_checkpoint(state, self.policy.state_dict(), self._parameters)
        for graphs in (self._step_graph, self._gradient_graph):
            if graphs is not None:
                graphs.reset()  # Adam's moments become other tensors
        self.policy.load_state_dict(
            {name[len(POLICY_PREFIX) :]: t for name, t in state.items() if name.startswith(POLICY_PREFIX)})
        for name, parameter in self._parameters.items():
            self._flat.view(self._clip.v, name).copy_(state[f"{CLIP_PREFIX}v/{name}"])
            if f"{ADAM_PREFIX}m/{name}" not in state:
                self._adam.state.pop(parameter, None)
                continue
            # The device on which Adam itself keeps its step counter.
            device = self.device if self.config.fused_adam else torch.device("cpu")
            self._adam.state[parameter] = {
                "step": state[f"{ADAM_PREFIX}step/{name}"].to(device, torch.float32, copy=True),
                "exp_avg": state[f"{ADAM_PREFIX}m/{name}"].to(self.device, torch.float32, copy=True),
                "exp_avg_sq": state[f"{ADAM_PREFIX}v/{name}"].to(self.device, torch.float32, copy=True)}
        self.gradient_steps = int(extra["gradient_steps"])
        self._restored_skips = int(extra["skipped_steps"])
        self._skipped_steps.fill_(self._restored_skips)
        self.hold_steps = int(extra["hold_steps"])
        self._clip.steps = int(extra["clip_steps"])
        self._pending_rewards = np.array(extra["pending_rewards"], np.float64)
        self._device_rewards.zero_()
        torch.set_rng_state(torch.tensor(extra["torch_rng"], dtype=torch.uint8))

    def _explain_skip(self, flags: Sequence[bool]) -> str:
        return explain_skip(self._term_names, list(self._parameters), flags)
