// Charts of the run page. Bands are the paper's (Berner et al. 2019, section 4.1 and table 1).
import type { Kind } from "../../api/curves";
import type { Picture } from "../../components/chart";

export interface Sheet { kind: Kind; pictures: readonly Picture[] }

const VERSIONS: readonly Picture[] = [
  { title: "Staleness", unit: "versions", band: { from: 0, to: 1, label: "Band: the paper's 0 to 1." },
    curves: [{ field: "staleness_median", label: "median" }, { field: "staleness_mean", label: "mean" },
             { field: "staleness_p95", label: "95th percentile" }] },
  { title: "Sample reuse", unit: "uses a sample", band: { from: 0.8, to: 1.1, label: "Band: the paper's 0.8 to 1.1." },
    curves: [{ field: "reuse", label: "whole run" }, { field: "reuse_recent", label: "recent" }] },
  { title: "Hero-steps", unit: "received since the beginning", curves: [{ field: "hero_steps", label: "hero-steps" }] },
  { title: "Throughput", unit: "hero-steps a second",
    curves: [{ field: "hero_steps_per_second", label: "played" }, { field: "consumed_per_second", label: "learned from" }] },
  { title: "Time of the optimizer", unit: "share",
    curves: [{ field: "busy_share", label: "computing" }, { field: "wait_share", label: "waiting for samples" }] },
  { title: "Policy", unit: "nats", curves: [{ field: "entropy", label: "entropy" }] },
  { title: "Action heads", unit: "entropy, share of the maximum",
    curves: [{ field: "of_max_entropy_action", label: "action" }, { field: "of_max_entropy_delay", label: "delay" },
             { field: "of_max_entropy_offset", label: "offset" }, { field: "of_max_entropy_unit", label: "unit" }] },
  { title: "Auxiliary heads", unit: "loss, share of chance",
    curves: [{ field: "of_chance_win_probability", label: "win" }, { field: "of_chance_net_worth_rank", label: "net-worth rank" },
             { field: "of_chance_building_events", label: "buildings" }] },
  { title: "Change of the policy", unit: "a step",
    curves: [{ field: "approx_kl", label: "approximate KL" }, { field: "clip_fraction", label: "clipped share" }] },
  { title: "Value", unit: "",
    curves: [{ field: "explained_variance", label: "explained variance" }, { field: "loss_value", label: "loss" }] },
  { title: "Schedules", unit: "", log: true,
    curves: [{ field: "learning_rate", label: "learning rate" }, { field: "entropy_coefficient", label: "entropy coefficient" },
             { field: "team_spirit", label: "team spirit" }] },
];

const GAMES: readonly Picture[] = [
  { title: "Last hits, denies", unit: "a hero and game",
    curves: [{ field: "statistics/last_hits", label: "last hits" }, { field: "statistics/denies", label: "denies" }] },
  { title: "Kills and deaths", unit: "a hero and game",
    curves: [{ field: "statistics/kills", label: "kills" }, { field: "statistics/deaths", label: "deaths" }] },
  { title: "Length of a game", unit: "seconds of game time", curves: [{ field: "game_seconds", label: "all games" }] },
];

const RATING: Picture = { title: "TrueSkill", unit: "points", note: "Around it: one σ.",
  curves: [{ field: "mu", label: "rated version", deviation: "sigma" }] };

/** The pictures of the ratings, by the opponents that there are. */
export function ratingPictures(names: readonly string[]): readonly Picture[] {
  const against = names.filter((n) => n.startsWith("win_rates/")).map((n) => n.slice("win_rates/".length)).slice(0, 6);
  if (!against.length) return [RATING];  // nothing has been rated yet
  return [RATING, { title: "Score of each rated version", unit: "share of games, a draw half", note: "Around it: 95 % intervals.",
    curves: against.map((name) => ({ field: `win_rates/${name}`, label: `against ${name}`,
      low: `win_intervals/${name}/0`, high: `win_intervals/${name}/1` })) }];
}

export const SHEETS: readonly Sheet[] = [{ kind: "versions", pictures: VERSIONS }, { kind: "games", pictures: GAMES }];

export function fieldsOf(pictures: readonly Picture[]): string[] {
  return ["version", ...pictures.flatMap((p) => p.curves.flatMap((c) =>
    [c.field, c.low, c.high, c.deviation].filter((f): f is string => f !== undefined)))];
}
