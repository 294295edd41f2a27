"""Worker on rank 0 that runs the controller's jobs that need the model.

The publisher's lease authorises it to claim jobs. Jobs are idempotent: each writes under its own names, and only the
last one, the cut-over, changes what others read. A check uses published versions and samples copied from the buffer.
The training loop writes the checkpoint.
"""

import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import redis
import torch

from five.agent.model.policy import Policy
from five.agent.schedules import hyperparameters_at
from five.agent.surgery import AgentSpec, Plan, migrate_learner
from five.agent.surgery.check import CheckReport, check_plan
from five.run.migration import checkpoint_tensors
from five.services.optimizer import revert
from five.services.optimizer.sample_recordings import SampleRecordings
from five.services.optimizer.training import Training
from rapid import tensorfile
from rapid.blobs import BlobStore, Ref
from rapid.store.errors import FencedOut
from rapid.store.fencing import FencingToken
from rapid.store.jobs import Job, JobQueue, JobState
from rapid.store.operation_blobs import operation_checkpoint, pin_reason, preserved_checkpoint
from rapid.store.parameters import ParameterStore
from rapid.store.state import RunState, Status
from rapid.store.surgery_plans import PlanStore

log = logging.getLogger(__name__)
Answer = dict[str, Any]
POLL_SECONDS = 0.5
POLICY = "policy/"


class JobRefused(ValueError):
    """A job that no further attempt can complete."""


@dataclass
class SurgeryWorker:
    """Runs jobs for one run. ``spec`` is this process's agent; ``fencing_token`` its fencing token, None while it has
    none."""

    state: RunState
    store: ParameterStore
    blobs: BlobStore
    training: Training
    spec: AgentSpec
    recordings: SampleRecordings
    fencing_token: Callable[[], FencingToken | None]
    jobs: JobQueue = field(init=False)
    plans: PlanStore = field(init=False)

    def __post_init__(self) -> None:
        self.jobs = JobQueue(self.state)
        self.plans = PlanStore(self.state)

    def run(self, stopping: Callable[[], bool]) -> None:
        """Run jobs until ``stopping()``. An error completes its job as failed and never ends the process."""
        logged = ""
        while not stopping():
            try:
                if not self.run_once():
                    time.sleep(POLL_SECONDS)
                logged = ""
            except Exception as error:
                if logged != str(error):
                    logged = str(error)
                    log.warning("cannot read jobs: %s", error)
                time.sleep(POLL_SECONDS)

    def run_once(self) -> bool:
        """Run one job if there is one; return whether there was."""
        fencing_token = self.fencing_token()
        if fencing_token is None or fencing_token.fence is None:
            return False
        # One thread of the holder runs one job at a time, so a job that it holds already was interrupted.
        job = self.jobs.unfinished(fencing_token.fence) or \
            self.jobs.claim(fencing_token.holder.partition("#")[0], fencing_token.fence)
        if job is None:
            return False
        log.info("job started id=%s attempt=%d", job.id, job.attempt)
        try:
            answer = self._run_job(job, fencing_token)
        except (JobRefused, revert.VersionNotPreserved, FencedOut) as error:
            self._fail_job(job, JobState.REFUSED, error)
        except Exception as error:
            log.exception("job failed id=%s", job.id)
            self._fail_job(job, JobState.FAILED, error)
        else:
            self.jobs.complete(job, JobState.DONE, answer)
        return True

    def _fail_job(self, job: Job, state: JobState, error: Exception) -> None:
        log.warning("job %s id=%s: %s", state, job.id, error)
        self.jobs.complete(job, state, error=str(error) or type(error).__name__)

    def _run_job(self, job: Job, fencing_token: FencingToken) -> Answer:
        payload = job.payload
        if payload.get("to_version") is not None or job.kind == "keep":
            return self._run_revert_job(job, fencing_token)
        plan = self._plan(payload)
        match job.kind:
            case "check":
                return self.check_plan(plan, payload)
            case "checkpoint":
                return self.checkpoint(job)
            case "transform":
                return self.transform(plan, payload)
            case "publish":
                return self.publish(plan, payload, job, fencing_token)
        raise JobRefused(f"job kind {job.kind!r} is unknown to this release")

    def _run_revert_job(self, job: Job, fencing_token: FencingToken) -> Answer:
        """Run a job of a revert, or of an anneal that preserves a version to revert to."""
        payload, training = job.payload, self.training
        match job.kind:
            case "checkpoint" | "keep":
                return self.checkpoint(job)
            case "transform":
                return revert.transform(self.state, self.store, self.blobs, training.checkpoints, training.config,
                                        payload)
            case "publish":
                return self.publish_revert(payload, job, fencing_token)
        raise JobRefused(f"job kind {job.kind!r} is unknown to this release")

    def _plan(self, payload: Mapping[str, Any]) -> Plan:
        try:
            plan = Plan.from_yaml(payload["plan"])
        except ValueError as error:
            raise JobRefused(f"plan is not readable: {error}") from None
        if plan.digest != payload["digest"]:
            raise JobRefused(f"plan digest {plan.digest} differs from the job's, {payload['digest']}")
        if plan.parent != self.spec.schema:
            raise JobRefused(f"plan parent {plan.parent}: the run has model schema {self.spec.schema}")
        return plan

    def check_plan(self, plan: Plan, payload: Mapping[str, Any]) -> Answer:
        """Measure a plan on the newest version and on recorded samples. The run does not change."""
        head = self.store.head()
        if head is None:
            raise RuntimeError("no version is published yet")
        tensors, _ = self.store.fetch(head)
        recorded, ref = self.recordings.take(payload["operation"])
        report = check_plan(bounded(plan, payload), self.spec, tensors, recorded)
        return {**_report_values(report), "version": head, "recording": ref._asdict(),
                "samples": self.recordings.samples}

    def checkpoint(self, job: Job) -> Answer:
        """Have the training loop write a checkpoint, and pin its version and the checkpoint.

        The controller has a deadline, and cancels the job when it passes.
        """
        payload = job.payload
        version = self.training.checkpoint_now(lambda: self._is_wanted(job))
        # First, as newer checkpoints replace this one while the head is archived; a revert needs it.
        ref = self.training.checkpoints.ref(version)
        self.training.checkpoints.preserve(preserved_checkpoint(self.state.run, version, payload["operation"]), ref)
        head = self.store.head()
        head = None if head is None else min(head, version)  # learning may have gone on during the write
        if head is not None and head not in self.store.pins():
            record = self.store.record(head)
            if record is not None and record.blob is None:
                self.store.archive(head)
            self.store.pin(head, pin_reason(payload["operation"]))
        return {"checkpoint": version, "digest": ref.digest, "bytes": ref.size, "head": head,
                "gradient_steps": self.training.learner.gradient_steps}

    def _is_wanted(self, job: Job) -> bool:
        """Return whether the job is not cancelled, as far as Redis is available."""
        try:
            return self.jobs.is_held(job)
        except redis.RedisError:
            return True

    def transform(self, plan: Plan, payload: Mapping[str, Any]) -> Answer:
        """Stage the checkpoint in the new schema and measure the plan on the parameters to be published."""
        made = payload["made"]["checkpoint"]
        tensors, extra = checkpoint_tensors(self.blobs, Ref.parse(made["digest"], made["bytes"]))
        recorded, _ = self.recordings.take(payload["operation"])
        policy = {n.removeprefix(POLICY): t.numpy() for n, t in tensors.items() if n.startswith(POLICY)}
        report = check_plan(bounded(plan, payload), self.spec, policy, recorded)
        if not report.ok:
            raise JobRefused(f"the checkpoint is outside the approved bounds: {_report_values(report)['why']}")
        target = plan.target(self.spec)
        steps = self.training.config.gradient_steps_per_iteration
        state, learner = migrate_learner(plan, self.spec, tensors, extra["learner"], steps)
        version = max(int(made["head"]), int(made["checkpoint"])) + 1
        warm = plan.warm_up_versions
        extra = {**extra, "learner": learner, "schema": target.schema,
                 "warm_up_until": version + warm, "operation": payload["operation"]}
        arrays: dict[str, npt.NDArray[Any]] = {n: t.detach().cpu().numpy() for n, t in state.items()}
        index = tensorfile.index_of(arrays, extra)
        name = operation_checkpoint(self.state.run, payload["operation"])
        ref = self.blobs.put([index.header(), *tensorfile.pieces_of(index, arrays)], name)
        return {**_report_values(report), "version": version, "warm_up_until": version + warm, "schema": target.schema,
                "layout": target.layout.hash, "checkpoint": ref._asdict()}

    def publish(self, plan: Plan, payload: Mapping[str, Any], job: Job, fencing_token: FencingToken) -> Answer:
        """Upload the new version next to the head, then cut the run over to it in one transaction."""
        made = payload["made"]["transform"]
        version, ref = int(made["version"]), Ref.parse(made["checkpoint"]["digest"], made["checkpoint"]["size"])
        before = self.state.record()
        if before is None:
            raise JobRefused("the run has no record")
        if before.epoch > payload["epoch"] and plan.digest in before.chain:
            return {"version": version}  # an earlier attempt succeeded
        target = plan.target(self.spec)
        tensors, meta = self._version(target, ref, version)
        staged = self.store.stage(version, tensors, meta)
        after = before.changed(new_epoch=True, **target.trees(), layout=target.layout.hash, schema=target.schema,
                               chain=(*before.chain, plan.digest))
        self.plans.put(plan.digest, {
            "plan": payload["plan"], "name": plan.name, "parent": plan.parent, "schema": target.schema,
            "layout": target.layout.hash, "game": dict(before.game), "model": dict(before.model),
            "epoch": after.epoch, "version": version, "warm_up_until": int(made["warm_up_until"]),
            "checkpoint": ref._asdict(), "operation": payload["operation"], "who": payload["who"], "at": time.time()})
        if not self.jobs.is_held(job):
            raise JobRefused("the job was cancelled")
        self.state.cut_over(fencing_token, staged, before, after, Status.WARMING, payload["who"], {
            "operation": payload["operation"], "plan": plan.name, "plan_digest": plan.digest, "schema": target.schema,
            "warm_up_until": int(made["warm_up_until"])})
        return {"version": version}

    def publish_revert(self, payload: Mapping[str, Any], job: Job, fencing_token: FencingToken) -> Answer:
        """Upload the version that continues from an earlier one, then cut the run over to it and its record in one
        transaction."""
        made = payload["made"]["transform"]
        version, ref = int(made["version"]), Ref.parse(made["checkpoint"]["digest"], made["checkpoint"]["size"])
        target = int(payload["to_version"])
        before = self.state.record()
        if before is None:
            raise JobRefused("the run has no record")
        if any(segment.operation == payload["operation"] for segment in self.state.lineage().segments):
            return {"version": version}  # an earlier attempt succeeded
        record = revert.record_of(self.state, target)
        tensors, meta = self._version(AgentSpec.from_trees(record.game, record.model), ref, version)
        staged = self.store.stage(version, tensors, meta)
        after = before.changed(new_epoch=True, game=record.game, model=record.model, layout=made["layout"],
                               schema=made["schema"], chain=record.chain)
        if not self.jobs.is_held(job):
            raise JobRefused("the job was cancelled")
        self.state.cut_over(fencing_token, staged, before, after, Status.WARMING, payload["who"], {
            "operation": payload["operation"], "to_version": target, "schema": made["schema"],
            "warm_up_until": int(made["warm_up_until"])}, parent=target, checkpoint=ref)
        return {"version": version}

    def _version(self, target: AgentSpec, ref: Ref, version: int
                 ) -> tuple[dict[str, npt.NDArray[np.generic]], dict[str, Any]]:
        """Return tensors and metadata of the version in a staged checkpoint, the first of a warm-up."""
        tensors, extra = checkpoint_tensors(self.blobs, ref)
        policy = Policy(target.layout, target.model)
        policy.load_state_dict({n.removeprefix(POLICY): t for n, t in tensors.items() if n.startswith(POLICY)})
        hyper = hyperparameters_at(self.training.client.schedules(), version, int(extra.get("hero_steps", 0)))
        meta = {"schema": target.schema, "layout": target.layout.hash, "reward_std": policy.rewards.std(),
                "hyperparameters": hyper.as_dict(), "gradient_steps": extra["learner"]["gradient_steps"],
                "warming": True, "operation": extra["operation"]}
        with torch.no_grad():
            return {n: t.detach().cpu().numpy() for n, t in policy.state_dict().items()}, meta


def bounded(plan: Plan, payload: Mapping[str, Any]) -> Plan:
    """Return the plan with the approved bounds, if the approval named other bounds than the plan's."""
    if not payload.get("bounds"):
        return plan
    try:
        return Plan.from_values({**plan.model_dump(mode="json"), "bounds": payload["bounds"]})
    except ValueError as error:
        raise JobRefused(f"approved bounds are not readable: {error}") from None


def _report_values(report: CheckReport) -> Answer:
    return {"ok": report.ok, "why": "; ".join(report.problems), "report": finite(report.model_dump(mode="json"))}


def finite(value: Any) -> Any:
    """Return JSON values with infinite and NaN numbers as text, which JSON cannot represent."""
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [finite(inner) for inner in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
