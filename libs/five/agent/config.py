"""Configuration of the agent: the model, its learning, and the league it plays in.

Names and defaults are those of Berner et al. 2019 (the Rerun column of table 2) where the paper prints them.
"""

import itertools
import math
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


# --------------------------------------------------------------------------------------------------------- the model

SplitHead = Literal["unit.attack", "unit.enemy", "unit.ally", "offset.move", "offset.follow"]
Bot = Literal["random", "scripted-easy", "scripted", "scripted-hard"]
IdSpace = Literal["unit", "animation", "modifier", "ability", "item", "pickup", "build", "area", "action"]


class ModelConfig(_Section):
    """Sizes of the network (Berner et al. 2019, appendix H). The defaults are the paper's where it prints them;
    the other widths are chosen so that the parameter count comes near the paper's 158,502,815."""

    lstm: int = Field(4096, ge=4, description="Units of the single-layer LSTM.")
    lstm_input: int = Field(4096, ge=4, description="Width of the fully connected layer that feeds the LSTM.")
    cross_hero_share: float = Field(
        0.25, ge=0, le=1, description="First share of that vector that is max-pooled over the heroes of a team.")
    key: int = Field(
        128, ge=4, description="Width of unit keys, of target-unit queries and of the primary actions' embeddings.")
    unit_hidden: int = Field(512, ge=4, description="First layer of a unit set.")
    unit: int = Field(512, ge=4, description="Second layer of a unit set: its first `key` values are the unit's key.")
    set_hidden: int = Field(128, ge=4, description="First layer of the sets of modifiers, abilities, items, pickups.")
    set: int = Field(128, ge=4, description="Second layer of these sets.")
    unit_embedding: int = Field(64, ge=1, description="Width of a unit type's embedding.")
    animation_embedding: int = Field(16, ge=1, description="Width of an animation's embedding.")
    modifier_embedding: int = Field(64, ge=1, description="Width of a modifier's embedding.")
    ability_embedding: int = Field(64, ge=1, description="Width of an ability's embedding.")
    item_embedding: int = Field(64, ge=1, description="Width of an item's embedding, also as next purchase.")
    pickup_embedding: int = Field(16, ge=1, description="Width of a pickup's embedding.")
    build_embedding: int = Field(16, ge=1, description="Width of a scripted build's embedding.")
    area_embedding: int = Field(16, ge=1, description="Width of the embedding of an area effect on the nearby map.")
    conv_filters: int = Field(32, ge=1, description="Filters of each of the two layers over minimap and nearby map.")
    auxiliary_hidden: int = Field(128, ge=4, description="Hidden layer of the auxiliary heads.")
    split_heads: tuple[SplitHead, ...] = Field(
        (), description="Heads of their own for a class of actions, besides the paper's: target units by what may be "
        "targeted, offsets of move and follow. Surgery splits a head of a running agent.")
    id_rows: dict[IdSpace, Annotated[int, Field(ge=1, le=65535)]] = Field(
        {}, description="Rows of an embedding, by id space, where more ids are needed than there is room for.")
    input_clip: float = Field(
        5.0, gt=0, description="Every normalised input is clipped to this many standard deviations.")
    precision: Literal["float32", "bfloat16"] = Field(
        "float32", description="bfloat16: layers run under autocast; parameters, state and outputs stay float32.")

    @model_validator(mode="after")
    def _keys_fit(self) -> "ModelConfig":
        if self.key > self.unit:
            raise ValueError(f"key ({self.key}) is cut from a unit's row, so it may not exceed unit ({self.unit})")
        if len(set(self.split_heads)) != len(self.split_heads):
            raise ValueError("split_heads names a head twice")
        return self

    @property
    def pooled(self) -> int:
        """Values of the LSTM's input that are max-pooled over the heroes of a team."""
        return int(self.lstm_input * self.cross_hero_share)


class ComputeConfig(_Section):
    """How a GPU computes products, in inference and learning alike: a probability ratio compares the two."""

    float32_products: Literal["float32", "tf32"] = Field(
        "float32", description="float32 products and convolutions on a GPU: in full, or with inputs rounded to "
        "TensorFloat32's 10 bits. PyTorch's own default is full for products and tf32 for convolutions.")
    bfloat16_sums: Literal["float32", "bfloat16"] = Field(
        "float32", description="What parts of a bfloat16 product are added up in where a GPU cuts its inner dimension. "
        "PyTorch's own default is bfloat16.")
    cuda_graphs: bool = Field(
        True, description="A GPU computes every slot of an observation, absent ones too, in one sequence of kernels "
        "that is recorded once and replayed, so that the host asks for one thing and not for each kernel; it takes "
        "memory for all slots. false: only what is present, kernel by kernel. A CPU does that in any case. "
        "services.optimizer.cuda_graphs is of gradient steps alone.")


# ------------------------------------------------------------------------------- learning, the league, the rating


class RampConfig(_Section):
    """One change of a hyperparameter: linear in versions from ``start`` over ``length`` (0: at once)."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, populate_by_name=True)

    start: int = Field(ge=0, description="Version at which the change begins.")
    length: int = Field(ge=0, description="Versions that it takes.")
    from_: float = Field(alias="from", description="Value before.")
    to: float = Field(description="Value after.")


class ScheduleConfig(_Section):
    """A hyperparameter over versions: ``initial`` until the first ramp, then piecewise linear."""

    initial: float = Field(description="Value before any ramp.")
    ramps: tuple[RampConfig, ...] = Field((), description="Changes in order of their start; they may not overlap.")

    @model_validator(mode="after")
    def _in_order(self) -> "ScheduleConfig":
        for before, after in itertools.pairwise(self.ramps):
            if after.start < before.start + before.length:
                raise ValueError(f"the ramp at version {after.start} begins before the one at version {before.start} "
                                 f"ends (version {before.start + before.length}): order them, without overlap")
        return self


class SchedulesConfig(_Section):
    """The four hyperparameters that change during a run (Berner et al. 2019, figure 7). Defaults: the first values."""

    learning_rate: ScheduleConfig = Field(ScheduleConfig(initial=5e-5), description="Adam's learning rate.")
    entropy_coefficient: ScheduleConfig = Field(ScheduleConfig(initial=0.01), description="Weight of the entropy.")
    team_spirit: ScheduleConfig = Field(ScheduleConfig(initial=0.3), description="Share of a hero's reward that is "
                                        "its team's mean.")
    gae_horizon_seconds: ScheduleConfig = Field(ScheduleConfig(initial=180.0), description="Horizon of the discount, "
                                                "seconds of game time.")

    @model_validator(mode="after")
    def _usable(self) -> "SchedulesConfig":
        bounds = {"learning_rate": (0.0, 1.0), "entropy_coefficient": (0.0, 1.0), "team_spirit": (0.0, 1.0),
                  "gae_horizon_seconds": (1.0, math.inf)}
        for name, (low, high) in bounds.items():
            schedule: ScheduleConfig = getattr(self, name)
            for value in (schedule.initial, *(v for ramp in schedule.ramps for v in (ramp.from_, ramp.to))):
                if not low <= value <= high:
                    raise ValueError(f"{name} takes the value {value}, which is not between {low:g} and {high:g}")
        return self


class LearnerConfig(_Section):
    """PPO, its optimizer and the gradient clip. Defaults: Berner et al. 2019, table 2 and section 3.2."""

    lstm_unroll_length: int = Field(16, ge=1, description="Timesteps of a sample.")
    samples_per_segment: int = Field(16, ge=1, description="Samples that are labelled and sent together.")
    batch_samples: int = Field(120, ge=1, description="Samples of a gradient step, on each optimizer.")
    gradient_steps_per_iteration: int = Field(32, ge=1, description="Gradient steps from a version to the next.")
    gae_lambda: float = Field(0.95, ge=0, le=1, description="GAE's λ.")
    ppo_clip: float = Field(0.2, gt=0, lt=1, description="The probability ratio is clipped to 1 ± this.")
    value_loss_weight: float = Field(1.0, ge=0, description="Weight of half the squared error of the value.")
    normalise_advantages: bool = Field(True, description="Standardise the advantages of each minibatch. The paper "
                                       "does not say; its sister project did.")
    advantage_scope: Literal["rank", "all"] = Field("rank", description="Whether advantages are standardised over an "
                                                    "optimizer's own minibatch or over all optimizers'.")
    reward_scale: Literal["reward", "return"] = Field(
        "reward", description="What rewards are divided by: the running deviation of a step's reward, as the paper "
        "reads, or of its discounted sum, which keeps the values near 1.")
    win_loss_weight: float = Field(1e-3, ge=0, description="Weight of the win-probability head, the one auxiliary "
                                   "head whose gradient reaches the LSTM.")
    net_worth_rank_loss_weight: float = Field(0.1, ge=0, description="Weight of the net-worth-rank head.")
    building_loss_weight: float = Field(0.1, ge=0, description="Weight of the building-events head.")
    building_horizon_seconds: float = Field(120.0, gt=0, description="Horizon of the building events' discount.")
    adam_beta1: float = Field(0.9, ge=0, lt=1, description="Adam's β1.")
    adam_beta2: float = Field(0.999, ge=0, lt=1, description="Adam's β2.")
    adam_epsilon: float = Field(1e-8, gt=0, description="Adam's ε; not in the paper.")
    gradient_clip: float = Field(5.0, ge=0, description="A gradient element is clipped to ± this times the root of "
                                 "its running second moment; 0 turns it off.")
    gradient_clip_decay: float = Field(0.999, gt=0, lt=1, description="Decay of that second moment; not in the paper.")
    gradient_clip_warmup_steps: int = Field(100, ge=1, description="Gradient steps before the clip begins.")
    initial_hold_steps: int = Field(32, ge=0, description="Gradient steps of a new run at learning rate 0, while the "
                                    "observations' statistics settle.")
    fused_adam: bool = Field(True, description="Use the single-kernel Adam.")


class BufferConfig(_Section):
    """An optimizer's experience buffer and the pace at which it is consumed."""

    capacity_samples: int = Field(4096, ge=1, description="Samples held at most; the oldest leave first.")
    capacity_bytes: int = Field(2 << 30, ge=1, description="Bytes held at most, as stored.")
    minimum_samples: int = Field(120, ge=1, description="Samples that must be there before a batch is drawn.")
    max_age_versions: int = Field(16, ge=1, description="A sample whose newest step is older is dropped; a safety "
                                  "net, not the pace.")
    draw: Literal["uniform", "least_used", "oldest"] = Field(
        "uniform", description="uniform: all that are held have equal chances, so that at a reuse of 1 some 37 % leave "
        "unused and as many draws are repetitions. least_used: those that were used least come first. oldest: of those "
        "the oldest first, a queue as long as minimum_samples; so staleness is set in Berner et al. 2019, figure 5b.")
    sample_reuse: float = Field(1.0, gt=0, description="Times a sample is used, at most, on average.")
    reuse_window_batches: float = Field(8.0, ge=1, description="Batches by which an optimizer that fell behind may "
                                        "catch up; what comes in beyond that is never made up for.")
    admission_batches: float = Field(4.0, ge=1, description="Batches' worth of unconsumed samples at which intake is "
                                     "held back; below reuse_window_batches.")

    @model_validator(mode="after")
    def _consistent(self) -> "BufferConfig":
        if self.minimum_samples > self.capacity_samples:
            raise ValueError(f"minimum_samples {self.minimum_samples} is above capacity_samples "
                             f"{self.capacity_samples}: no batch would ever be drawn")
        if self.admission_batches >= self.reuse_window_batches:
            raise ValueError(f"admission_batches {self.admission_batches} is not below reuse_window_batches "
                             f"{self.reuse_window_batches}: intake would never be held back, and samples would come in "
                             "that are never made use of")
        return self


class LeagueConfig(_Section):
    """Who is played against (Berner et al. 2019, appendix N)."""

    past_opponent_share: float = Field(0.2, ge=0, le=1, description="Share of games against a past version.")
    quality_learning_rate: float = Field(0.01, gt=0, description="η: what a win takes from the beaten opponent's "
                                         "quality, over its probability times the size of the pool.")
    add_every_versions: int = Field(10, ge=1, description="Versions from one addition to the pool to the next.")
    past_in_play: int = Field(0, ge=0, description="Past versions in play at a time: each place among them is drawn "
                              "again after in_play_minutes, and games are spread over the places. Over time each "
                              "version is met as often as if every game drew, as in the paper (0); but inference has "
                              "few to keep in memory, and full batches of them.")
    in_play_minutes: float = Field(20.0, gt=0, description="Minutes for which a version keeps its place in play.")
    max_quality_drop: float = Field(1.0, gt=0, description="Most that one win takes from a quality: the rule is "
                                    "unbounded for opponents that are almost never drawn.")
    remembered_games: int = Field(65536, ge=1, description="Game ids kept so that a repeated report counts once.")


class RatingConfig(_Section):
    """TrueSkill of versions against frozen references (Berner et al. 2019, appendix J)."""

    sigma: float = Field(25 / 3, gt=0, description="σ of a new rating; what is known before any game is four times "
                         "as wide.")
    beta: float = Field(25 / 6, gt=0, description="β: the skill gap of about 76% wins.")
    tau: float = Field(0.0, ge=0, le=0, description="τ: growth of σ between games; 0, a version does not change.")
    draw_probability: float = Field(0.02, ge=0, lt=1, description="Share of draws between equals for as long as no "
                                    "game was drawn; then it is estimated from the games.")
    nearby: float = Field(10.0, gt=0, description="References further than this from the rating are not played.")
    games_per_rating: int = Field(750, ge=2, description="Games after which a version's rating is final.")
    games_per_round: int = Field(50, ge=2, description="Games that are assigned together; all of them end before "
                                 "others are, against the references that are near then.")
    games_of_first: int = Field(50, ge=2, description="Games of a run's first rating, against random play: who starts "
                                "a run waits for it.")
    anchors: tuple[Bot, ...] = Field(("random", "scripted-easy", "scripted", "scripted-hard"),
                                     description="Bots that are rated once against each other, after the first "
                                     "version.")
    games_per_anchor_pair: int = Field(40, ge=2, description="Games between every two anchors.")
    always: tuple[Bot, ...] = Field((), description="Anchors that every version plays however far they are, for a "
                                    "win rate that tells a person something.")
    reference_spacing: float = Field(4.0, gt=0, description="A rated version further than this from every reference "
                                     "becomes one.")

    @model_validator(mode="after")
    def _rated_against_somebody(self) -> "RatingConfig":
        if "random" not in self.anchors or len(set(self.anchors)) != len(self.anchors):
            raise ValueError("rating.anchors must name random, whose rating is the scale's 0, and nobody twice")
        if strangers := set(self.always) - set(self.anchors):
            raise ValueError(f"rating.always names {', '.join(sorted(strangers))}, which rating.anchors does not name")
        return self
