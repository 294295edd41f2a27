"""Units of the configuration's numbers. A test refuses a number without a unit, and an entry without a key."""

from collections.abc import Mapping

# By the suffix of a key's last part if the entry begins with "_", otherwise by the last part; the first match counts.
UNITS: Mapping[str, str] = {
    "_seconds": "s", "_us": "µs", "_bytes": "bytes", "_mebibytes": "MiB", "_kibibytes": "KiB", "_samples": "samples",
    "_segments": "segments", "_batches": "batches of batch_samples", "_versions": "versions",
    "_steps": "gradient steps", "_per_second": "1/s", "_fraction": "share", "_share": "share",
    "_probability": "probability", "tolerance": "share", "_embedding": "values", "_hidden": "units",
    "_weight": "factor", "_port": "TCP port", "port": "TCP port", "_modifiers": "slots", "_creeps": "slots",
    "threads": "threads", "_threads": "threads", "games": "games", "games_per_rating": "games",
    "games_per_round": "games", "first_rating_games": "games", "games_per_anchor_pair": "games",
    "games_per_past_opponent": "games", "_burst": "requests", "burst": "requests", "seed": "none",
}
# By the whole key.
KEY_UNITS: Mapping[str, str] = {
    "game.heroes_per_team": "heroes", "game.kills_to_win": "deaths", "game.offset_cell": "world units",
    "game.commit_moves": "choices",
    "game.observation.buildings": "slots", "game.observation.wards": "slots", "game.observation.couriers": "slots",
    "game.observation.pickups": "slots", "game.observation.minimap": "cells", "game.observation.nearby_map": "cells",
    "game.observation.passability": "cells", "game.observation.generation": "none",
    "game.consumables.tango": "charges", "game.consumables.salve": "charges", "game.consumables.clarity": "charges",
    "game.consumables.town_portal": "charges",
    "game.randomisation.stats": "relative deviation", "game.randomisation.gold": "relative deviation",
    "game.randomisation.attributes": "relative deviation", "game.randomisation.armor": "armor",
    "game.randomisation.move_speed": "relative deviation", "game.randomisation.hp_regen": "hit points a second",
    "game.randomisation.mana_regen": "mana a second", "game.randomisation.magic_resistance": "percentage points",
    "game.randomisation.consumables": "probability",
    "game.randomisation.xp": "levels", "game.randomisation.item_drop": "probability",
    "game.randomisation.item_insert": "probability", "game.randomisation.skill": "probability",
    "game.randomisation.lane": "probability", "rewards.time_decay": "factor",
    "model.lstm": "units", "model.lstm_input": "units", "model.key": "values", "model.unit": "units",
    "model.set": "units", "model.conv_filters": "filters", "model.input_clip": "standard deviations",
    "learning.lstm_unroll_length": "timesteps", "learning.samples_per_segment": "samples",
    "learning.outcome_samples_per_game": "samples", "learning.entropy_weights.action": "factor",
    "learning.entropy_weights.delay": "factor", "learning.entropy_weights.offset": "factor",
    "learning.entropy_weights.unit": "factor",
    "learning.gradient_steps_per_iteration": "gradient steps", "learning.gae_lambda": "none",
    "learning.ppo_clip": "probability ratio", "learning.adam_beta1": "none", "learning.adam_beta2": "none",
    "learning.adam_epsilon": "none", "learning.gradient_clip": "standard deviations",
    "learning.gradient_clip_decay": "none",
    "schedules.learning_rate": "none", "schedules.entropy_coefficient": "factor",
    "schedules.team_spirit": "share",
    "schedules.gae_horizon_seconds": "s", "schedules.scripted_fraction": "share", "schedules.scripted_bot": "position",
    "schedules.game_seconds": "s",
    "schedules.middle_fraction": "share", "schedules.building_health": "factor",
    "services.rollout.snapshots": "snapshots",
    "buffer.sample_reuse": "uses of a sample",
    "league.quality_learning_rate": "quality", "league.max_quality_drop": "quality",
    "rating.sigma": "rating points", "rating.beta": "rating points", "rating.tau": "rating points",
    "league.active_past_versions": "versions", "league.active_minutes": "min",
    "rating.max_reference_distance": "rating points", "rating.reference_spacing": "rating points",
    "rpc.retries": "tries", "rpc.max_concurrent_calls": "calls", "services.evaluator.replay_days": "days",
    "store.keep_versions": "versions", "store.archive_every": "versions",
    "store.keep_archived": "versions", "store.max_archived": "versions", "store.series_records": "records",
    "services.dota_env.max_games": "games",
    "services.dota_env.max_streams": "streams",
    "services.rollout.processes": "processes", "services.rollout.groups": "groups",
    "services.rollout.optimizers_per_process": "optimizers",
    "services.inference.max_batch": "team-steps", "services.inference.max_sessions": "sessions",
    "services.optimizer.max_optimizers": "optimizers", "services.optimizer.optimizers": "optimizers",
    "services.optimizer.ranks_per_node": "optimizers", "services.optimizer.checkpoints_kept": "checkpoints",
    "tracing.sampled_steps": "share", "tracing.sampled_requests": "share",
    "services.evaluator.guard_share": "share", "services.evaluator.cpu_share": "cores",
    "services.evaluator.draft_line_ups": "line-ups", "services.evaluator.keep_replays": "files",
    "services.controller.limits.concurrent_requests": "requests",
    "services.controller.limits.connections": "connections",
    "services.controller.limits.connections_per_address": "connections",
    "services.controller.limits.sessions_per_token": "sessions", "services.controller.limits.streams": "clients",
    "services.controller.limits.viewers": "viewers", "services.controller.limits.spectators": "people",
    "services.controller.limits.players": "people", "services.controller.limits.drafts": "requests",
    "services.play.max_connections": "people",
    "services.dotaservice.max_ticks": "engine frames",
    "services.play.recordings": "games",
    "services.controller.operations.attempts": "tries",
    "services.controller.autoscaler.rollout.min": "pods", "services.controller.autoscaler.rollout.max": "pods",
    "services.controller.autoscaler.inference.min": "pods", "services.controller.autoscaler.inference.max": "pods",
    "services.controller.autoscaler.rollout.target": "uses of a sample",
    "services.controller.autoscaler.inference.target": "s",
}


def unit_of(key: str) -> str:
    """Return the unit of a number by its dotted key; "none" for a number without a unit. Raises ValueError for an
    unknown key."""
    at = key.replace("[]", "")
    for end, unit in (("ramps.start", "versions or hero-steps"), ("ramps.length", "versions or hero-steps")):
        if at.endswith(end):
            return unit
    at = at.removesuffix(".initial").removesuffix(".ramps.from").removesuffix(".ramps.to")
    if at in KEY_UNITS:
        return KEY_UNITS[at]
    last = at.rpartition(".")[2]
    for end, unit in UNITS.items():
        if last.endswith(end) if end.startswith("_") else last == end:
            return unit
    raise ValueError(f"{key} has no unit: add it to five.run.units")
