import { league, ratings } from "../../api/live";
import { number } from "../../text";

const SHOWN = 200;

/** Chance that each past version is drawn: the softmax of qualities (Berner et al. 2019, appendix N). */
export function chances(qualities: readonly number[]): number[] {
  const top = Math.max(...qualities);
  const weights = qualities.map((q) => Math.exp(q - top));
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.map((w) => w / sum);
}

/** Past versions that games are played against, and what versions are worth. */
export function LeaguePage() {
  const pool = league.value;
  const chance = chances(pool.map((o) => o.quality));
  const top = Math.max(...chance, 1e-9);
  return <>
    <h1>League</h1>
    <section class="card"><h2>Opponent pool</h2>
      <p class="quiet">{pool.length} past versions. One is drawn by the softmax of qualities; a quality falls when the version is beaten.</p>
      <div class="scroll tall" tabIndex={0} role="region" aria-label="Opponent pool"><table>
        <thead><tr><th>version</th><th>drawn</th><th><span class="sr">share</span></th><th>quality</th><th>games</th><th>won by the agent</th></tr></thead>
        <tbody>{pool.slice(0, SHOWN).map((o, i) => <tr key={o.version}>
          <td>{o.version}</td><td>{number(100 * (chance[i] ?? 0), 1)} %</td>
          <td class="meter-place"><meter min={0} max={top} value={chance[i] ?? 0} aria-label={`version ${o.version}, drawn`} /></td>
          <td>{number(o.quality, 3)}</td><td>{o.games}</td>
          <td>{o.games ? `${number((100 * o.wins) / o.games, 0)} %` : "–"}</td></tr>)}</tbody></table></div>
      {pool.length > SHOWN && <p class="quiet">The newest {SHOWN} are shown.</p>}
    </section>
    <section class="card"><h2>Ratings</h2>
      <div class="scroll tall" tabIndex={0} role="region" aria-label="Ratings"><table>
        <thead><tr><th>player</th><th>TrueSkill</th><th>games</th><th>scores of its own games</th></tr></thead>
        <tbody>{ratings.value.slice(0, SHOWN).map((r) => <tr key={r.player}>
          <td>{r.player}{r.reference && <span class="tag">reference</span>}</td>
          <td>{number(r.mu, 1)} ± {number(r.sigma, 1)}</td><td>{r.games}</td>
          <td>{Object.entries(r.against).map(([name, s]) =>
            `${name} ${number(100 * s.score, 0)} % (${number(100 * s.low, 0)} to ${number(100 * s.high, 0)})`).join(" · ")}</td>
        </tr>)}</tbody></table></div>
    </section>
  </>;
}
