// Evidence for the numbers: how often heroes met in training, and how often the win head was right.
import { number, percent } from "../../text";
import type { Calibration, Draft, PairOfHeroes } from "./state";
import { said } from "./state";

export function pairText(pair: PairOfHeroes | null): string {
  return pair ? `${pair.allied ? "with" : "against"} ${said(pair.other)}: ${number(pair.games, 0)}` : "–";
}

export function Support({ draft }: { draft: Draft }) {
  const rare = draft.support;
  return <section class="card"><h2>What training has seen</h2>
    {!draft.games ? <p>Nothing is known: no recorded training game names its line-up.</p> : <>
      <p>{number(draft.games, 0)} training games are counted.{" "}
        {rare && <>Of the pairs picked so far {said(rare.hero)} {rare.allied ? "with" : "against"} {said(rare.other)} was played
          least: <b>{number(rare.games, 0)}</b> times.</>}</p>
      <p class="quiet small">A pair that was hardly played is a number that the model has hardly been taught.</p></>}
  </section>;
}

export function Reliability({ found }: { found: Calibration }) {
  return <section class="card"><h2>How right the win head was</h2>
    {!found.games ? <p>Nothing is known: no recorded game of self-play carries what was predicted before it.</p> : <>
      <p>Over {number(found.games, 0)} games of self-play by versions {found.first} to {found.last}, at their first observation, it was
        off by <b>{number(100 * (found.error ?? 0), 1)} points</b> on average. Brier score {number(found.brier, 3)}; always saying the
        mean result has {number(found.brier_constant, 3)}.</p>
      {found.is_informative === false && <p class="warn">The win head knows nothing, so that these values are noise: its Brier
        score is not lower by two standard errors, {number(2 * (found.gain_error ?? 0), 4)}.</p>}
      <div class="scroll" tabIndex={0} role="region" aria-label="Calibration"><table>
        <thead><tr><th>said</th><th>games</th><th>Radiant won</th><th>95 %</th></tr></thead>
        <tbody>{found.bins.filter((b) => b.games > 0).map((b) => <tr key={b.low}>
          <td>{percent(b.predicted ?? 0)}</td><td>{number(b.games, 0)}</td><td>{percent(b.won ?? 0)}</td>
          <td>{percent(b.at_least ?? 0, 0)} to {percent(b.at_most ?? 0, 0)}</td></tr>)}</tbody></table></div></>}
  </section>;
}
