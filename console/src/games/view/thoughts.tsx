import type { Header } from "../decode/stream.ts";
import type { Frame } from "../decode/schema.ts";
import { plain, signed, tableOf, value } from "../reading.ts";
import { heroName } from "./scoreboard.tsx";

const CHOICES = 8, TERMS = 8, RANKS = ["first", "second", "third", "fourth", "fifth"];

function Bars({ rows, empty }: { rows: readonly { name: string; share: number; text: string; mark?: boolean }[]; empty: string }) {
  if (!rows.length) return <p class="quiet">{empty}</p>;
  return <ul class="bars">{rows.map((row, k) => <li key={k} class={row.mark ? "chosen" : ""}>
    <span class="label">{row.name}{row.mark ? " (chosen)" : ""}</span>
    <meter min={0} max={1} value={row.share} aria-label={row.name} /><span class="number">{row.text}</span></li>)}</ul>;
}

const percent = (p: number): string => `${(100 * p).toFixed(p < 0.1 ? 1 : 0)}%`;

/** Policy outputs of the chosen hero at the shown step, and its rewards of the last ten seconds. */
export function Thoughts({ header, frame, earlier, hero }: { header: Header; frame: Frame; earlier: Frame | undefined; hero: number }) {
  const { schema, names } = header;
  const of = (field: string): number => value(schema, frame, "thought", hero, field);
  const per = (name: string): number => Math.floor((tableOf(schema, name)?.rows ?? 0) / 10);
  const name = heroName(header, frame, hero) || "this hero";
  if (!of("known")) return <p class="quiet">{name}: the policy reported nothing. A bot plays it, or its policy is not recorded.</p>;
  const action = of("action");
  const choices = Array.from({ length: per("choice") }, (_, k) => hero * per("choice") + k).map((row) => ({
    id: value(schema, frame, "choice", row, "action"), p: value(schema, frame, "choice", row, "probability") / 255 }))
    .filter((c) => c.id).sort((a, b) => b.p - a.p).slice(0, CHOICES);
  const aims = Array.from({ length: per("aim") }, (_, k) => hero * per("aim") + k).map((row) => {
    const unit = value(schema, frame, "aim", row, "unit"), p = value(schema, frame, "aim", row, "probability") / 255;
    const team = value(schema, frame, "unit", unit - 1, "look") >> 4 & 3;
    const what = unit ? plain(names.unit?.[value(schema, frame, "unit", unit - 1, "type") - 1] ?? "") : "";
    return { what: what && `${what} (${["Radiant", "Dire", "neutral"][team] ?? ""})`, p };
  }).filter((a) => a.what && a.p > 0);
  const unitName = (unit: number): string => plain(names.unit?.[value(schema, frame, "unit", unit - 1, "type") - 1] ?? "").replace(/^(good|bad)guys /, "");
  // Only for teams of several heroes: a single hero is always the richest.
  const team = Math.floor(hero / 5), mates = Array.from({ length: 5 }, (_, k) => team * 5 + k).filter((h) => heroName(header, frame, h)).length;
  const ranks = mates < 2 ? [] : RANKS.slice(0, mates).map((rank) => ({ rank, p: value(schema, frame, "rank", hero, rank) / 255 }));
  const falls = Array.from({ length: (tableOf(schema, "fall")?.rows ?? 0) / 2 }, (_, k) => team * (tableOf(schema, "fall")?.rows ?? 0) / 2 + k)
    .map((row) => ({ unit: value(schema, frame, "fall", row, "unit"), p: value(schema, frame, "fall", row, "probability") / 255 })).filter((f) => f.unit && f.p > 0);
  const rewards = tableOf(schema, "reward");
  const terms = (rewards?.fields ?? []).map((term) => ({ term,
    gained: signed(value(schema, frame, "reward", hero, term) - (earlier ? value(schema, earlier, "reward", hero, term) : 0)) / 100 }))
    .filter((t) => t.gained !== 0).sort((a, b) => Math.abs(b.gained) - Math.abs(a.gained)).slice(0, TERMS);
  return <div>
    <dl class="facts">
      <div><dt>value</dt><dd>{(signed(of("value")) / 1000).toFixed(3)}</dd></div>
      {(of("known") & 2) > 0 && <div><dt>its team wins</dt><dd>{percent(of("win") / 65535)}</dd></div>}
      {of("version") > 0 && <div><dt>version</dt><dd>{of("version") - 1}</dd></div>}
    </dl>
    <h3>Action of {name}</h3>
    <Bars empty="It had no choice." rows={choices.map((c) => ({ name: plain(names.action?.[c.id] ?? `action ${c.id}`), share: c.p, text: percent(c.p), mark: c.id === action }))} />
    <h3>Its target, if the action takes one</h3>
    <Bars empty="The action takes no unit." rows={aims.map((a) => ({ name: a.what, share: a.p, text: percent(a.p) }))} />
    {ranks.some((r) => r.p > 0) && <><h3>Its net worth in its team at the end</h3>
      <Bars empty="" rows={ranks.map((r) => ({ name: r.rank, share: r.p, text: percent(r.p) }))} /></>}
    {(of("known") & 2) > 0 && tableOf(schema, "fall") && <><h3>Enemy buildings in sight, soon gone from it</h3>
      <Bars empty="None with a chance of half a percent." rows={falls.map((f) => ({ name: unitName(f.unit), share: f.p, text: percent(f.p) }))} /></>}
    <h3>Rewards of the last ten seconds</h3>
    {terms.length ? <table class="terms"><tbody>{terms.map((t) => <tr key={t.term}><th scope="row">{t.term.replaceAll("_", " ")}</th>
      <td class={t.gained < 0 ? "loss" : "gain"}>{t.gained > 0 ? "+" : ""}{t.gained.toFixed(2)}</td></tr>)}</tbody></table>
      : <p class="quiet">None.</p>}
  </div>;
}
