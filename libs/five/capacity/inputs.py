"""Measured inputs of the capacity tables and the simulation, each with its source.

``bench`` inputs are in docs/benchmarks.md (`five bench`, one core each), ``speed`` inputs in docs/speed.md; ``here``
were measured by hand on the same kind of machine (2 cores, Zen 4 class); ``paper`` is Berner et al. 2019;
``assumed`` were not measured. Nothing is extrapolated beyond the measured batch. A GPU is the paper's of 2019; a
smaller model is assumed to be faster in proportion to its parameters.
"""

from dataclasses import dataclass
from typing import Literal

Source = Literal["bench", "speed", "here", "paper", "assumed"]


@dataclass(frozen=True)
class Input:
    """A number, its unit and its source."""

    value: float
    unit: str
    source: Source
    about: str


ENV_HERO_STEPS = Input(
    30_941, "hero-steps/s", "bench", "`env.hero_steps`: games of five against five behind gRPC, one core")
GAME_HERO_STEPS = Input(
    68_509, "hero-steps/s", "bench", "`game.hero_steps_agents`: the same within a rollout, for agents on both sides")
LAPTOP_GAME_HERO_STEPS = Input(
    29_552, "hero-steps/s", "bench", "`train.alone.game`: laptop-1v1's games within a rollout, one core")
CPU_BATCH_1 = Input(1_049, "team-steps/s", "bench", "`inference.team_steps.batch1`: the laptop model, one core")
CPU_BATCH_60 = Input(36_955, "team-steps/s", "bench", "`inference.team_steps.batch60`: the same, batches of 60")
LAPTOP_HERO_STEPS = Input(
    10_329, "hero-steps/s", "bench", "`train.hero_steps`: the whole system on two cores, learned from")
INTAKE_SMALL = Input(78e-6, "s", "speed", "to read, check, cut and store a segment of laptop-1v1, 109 kB: 61 + 17 µs, "
                     "beside its stream")
INTAKE_LARGE = Input(150e-6, "s", "speed", "the same of rerun, 4.36 MB: 0.12 + 0.03 ms")
PUBLISH_FP32 = Input(0.622, "s", "bench", "`publish.seconds`: the 156.6 M parameters of rerun, from the call until "
                     "they play")
PUBLISH_BF16 = Input(0.576, "s", "bench", "`publish.seconds.bfloat16`: the same in bf16")
GPU_TEAM_STEPS = Input(
    960, "team-steps/s", "paper", "figure 2: 57,600 workers, 256 timesteps a minute, both teams, 512 GPUs; batches of "
    "about 60, the paper's model")
GPU_SAMPLES = Input(60, "samples/s", "paper", "figure 2: 120 samples of 16 timesteps every 2 s on each GPU")
GAME_STEPS = Input(
    20_000, "timesteps", "paper", "section 2: length of a game")
PAPER_PARAMETERS = Input(158_502_815, "parameters", "paper", "table 1, the last row")
REDIS_FETCH_FP32 = Input(6, "fetches/s", "here", "full reads of 158.5 M parameters that one Redis core serves, fp32")
REDIS_FETCH_BF16 = Input(11, "fetches/s", "here", "the same in bf16")
REDIS_SET = Input(6e-6, "s", "here", "CPU time of Redis for one write of 700 bytes, append-only file on")
REDIS_BEAT = Input(37e-6, "s", "here", "CPU time of Redis for one heartbeat: a function that renews a lease of 700 "
                   "bytes and its entry in the index (`five bench load`)")
REDIS_LEASE_READ = Input(1.8e-6, "s", "here", "the same for reading one lease, all leases in one exchange")
BLOB_BYTES = Input(50e6, "bytes/s", "assumed", "rate of one writer to the blob store "
                   "(blobs.megabytesPerSecond)")
STREAM_SMALL = Input(2_100, "messages/s", "here", "round trips on gRPC streams of 64 KB into one Python process")
STREAM_LARGE = Input(830e6, "bytes/s", "here", "the same with 640 KB: 1,300 a second")
ASSIGN = Input(0.0006, "s", "here", "CPU time of the opponents service for one assignment, pool of 5,600 versions: "
               "0.1 ms for the pool, Redis included, and a round trip of gRPC as measured for small messages")
REPORT = Input(0.0008, "s", "here", "the same for one result: 0.32 ms for the pool")
TEAM_STEP_1V1 = Input(2_000, "bytes", "speed", "one team-step of laptop-1v1, bitmask and float16: a 128th of a "
                      "segment of 271 kB, less states and labels")
TEAM_STEP_5V5 = Input(20_340, "bytes", "here", "one team-step of the paper's layout, minute 10, bitmask and float16")
SEGMENT_STEP_1V1 = Input(740, "bytes", "speed", "one team-step of laptop-1v1 within a segment, as changes: a 128th of "
                         "109 kB, less states and labels")
SEGMENT_STEP_5V5 = Input(6_290, "bytes", "speed", "one team-step of the paper's layout within a segment, as changes, "
                         "minute 8")
TEAM_STEP_5V5_ZSTD = Input(4_607, "bytes", "here", "the same with zstd on top (services.rollout.encoding sparse_zstd)")
FIXED_SHARE = Input(
    0.5, "of a pass", "assumed", "fixed share of a GPU's forward pass of 60; on the CPU it is 0.48")
BOOT = Input(60, "s", "assumed", "from requesting a pod to its first step, with node and image ready")

FIGURES: tuple[Input, ...] = tuple(f for f in list(globals().values()) if isinstance(f, Input))
