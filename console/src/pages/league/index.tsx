import { league, ratings } from "../../api/live";
import { number, percent, rating } from "../../text";

const SHOWN = 200;

/** Probability that each past version is sampled as the opponent: the softmax of qualities (Berner et al. 2019, appendix N). */
function chances(qualities: readonly number[]): number[] {
  const top = Math.max(...qualities);
  const weights = qualities.map((q) => Math.exp(q - top));
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.map((w) => w / sum);
}

/** The opponent pool and the ratings. */
export function LeaguePage() {
  const { items: pool, total } = league.value;
  const chance = chances(pool.map((o) => o.quality));
  const top = Math.max(...chance, 1e-9);
  return <>
    <h1>League</h1>
    <section class="card"><h2>Opponent pool</h2>
      <p class="quiet">{total === 0 ? "No past version is in the pool yet." : `${total} past versions. One is drawn by the softmax of qualities; a quality falls when the version is beaten.`}
        {total > pool.length && ` The shares are among the newest ${pool.length}.`}</p>
      <div class="scroll tall" tabIndex={0} role="region" aria-label="Opponent pool"><table>
        <thead><tr><th>version</th><th>drawn</th><th><span class="sr">share</span></th><th>quality</th><th>games</th><th>won by the agent</th></tr></thead>
        <tbody>{pool.slice(0, SHOWN).map((o, i) => <tr key={o.version}>
          <td>{o.version}</td><td>{percent(chance[i] ?? 0)}</td>
          <td class="meter-place"><meter min={0} max={top} value={chance[i] ?? 0} aria-label={`version ${o.version}, drawn`} /></td>
          <td>{number(o.quality, 3)}</td><td>{o.games}</td>
          <td>{o.games ? percent(o.wins / o.games, 0) : "–"}</td></tr>)}</tbody></table></div>
      {total > SHOWN && <p class="quiet">The newest {SHOWN} are shown.</p>}
    </section>
    <section class="card"><h2>Ratings</h2>
      {ratings.value.length === 0 && <p class="quiet">Nothing has been rated yet.</p>}
      <div class="scroll tall" tabIndex={0} role="region" aria-label="Ratings"><table>
        <thead><tr><th>player</th><th>TrueSkill</th><th>games</th><th>scores of its own games</th></tr></thead>
        <tbody>{ratings.value.slice(0, SHOWN).map((r) => <tr key={r.player}>
          <td>{r.player}{r.reference && <span class="tag">reference</span>}</td>
          <td>{rating(r.mu, r.sigma)}</td><td>{r.games}</td>
          <td>{Object.entries(r.against).map(([name, s]) =>
            `${name} ${percent(s.score, 0)} (${percent(s.low, 0)} to ${percent(s.high, 0)})`).join(" · ")}</td>
        </tr>)}</tbody></table></div>
      {ratings.value.length > SHOWN && <p class="quiet">The newest {SHOWN} are shown.</p>}
    </section>
  </>;
}
