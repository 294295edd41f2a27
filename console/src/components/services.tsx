import { services } from "../api/live";
import { overview } from "../api/run";
import { number, span } from "../text";
import { useNow } from "./now";

const SHOWN = 6;

function statsText(stats: Record<string, unknown>): string {
  return Object.entries(stats).filter(([, v]) => typeof v === "number" || typeof v === "string").slice(0, SHOWN)
    .map(([k, v]) => `${k} ${typeof v === "number" ? number(v) : v}`).join(" · ");
}

/** Live services: time since their start, age of their heartbeat, and statistics. */
export function Services() {
  const now = useNow(), drift = overview.value?.drift ?? [];
  return <section class="card"><h2>Services</h2>
    <div class="scroll" tabIndex={0} role="region" aria-label="Services"><table>
      <thead><tr><th>service</th><th>up for</th><th>heartbeat</th><th>says</th></tr></thead>
      <tbody>{services.value.map((s) => <tr key={`${s.kind}/${s.id}`}>
        <td>{s.kind}/{s.id}</td><td>{span(now - s.started_at)}</td>
        <td class={now - s.beaten_at > 20 ? "bad" : ""}>{span(now - s.beaten_at)}</td>
        <td class="quiet">{statsText(s.stats)}</td></tr>)}</tbody></table></div>
    {drift.length > 0 && <p class="warn">The controller's configuration file differs from the run's record in {drift
      .map((d) => `${d.key} (file ${JSON.stringify(d.file)}, run ${JSON.stringify(d.record)})`).join(", ")}.</p>}
  </section>;
}
