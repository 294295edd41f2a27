import { useEffect, useState } from "preact/hooks";
import { post, request } from "../../api/client";
import { anneal } from "../../api/live";
import type { AnnealNow, Finding, Operation } from "../../api/types";
import { ActButton } from "../../components/act";
import { NumberField } from "../../components/number";
import { number, percent } from "../../text";

const LIVE = ["ramping", "gate", "held", "waiting"];

/** Evidence against its bound: a full bar decides. */
function Evidence({ name, value, bound, bad }: { name: string; value: number; bound: number; bad: boolean }) {
  const share = Math.min(1, Math.log1p(Math.max(0, value)) / Math.log1p(bound));
  return <div class="evidence"><span>{name}</span>
    <span class={`gauge ${bad ? "harm" : "fine"}`} role="meter" aria-valuenow={Number(value.toFixed(2))} aria-valuemin={0}
          aria-valuemax={bound} aria-label={name}><i style={{ width: `${share * 100}%` }} /></span>
    <b>{number(value, 1)}</b><span class="quiet">of {number(bound, 0)}</span></div>;
}

/** Evidence over the pairs of this attempt, with both bounds. */
function Course({ finding }: { finding: Finding }) {
  const rows = [[0, 1, 1] as const, ...finding.history];
  const top = Math.log1p(Math.max(finding.fails_at, finding.passes_at)) * 1.1;
  const end = Math.max(1, finding.pairs) * 1.05;
  const x = (p: number) => 4 + (p / end) * 292, y = (v: number) => 86 - (Math.log1p(Math.max(0, v)) / top) * 80;
  const line = (column: 1 | 2) => rows.map((r, i) => `${i ? "L" : "M"}${x(r[0]).toFixed(1)},${y(r[column]).toFixed(1)}`).join("");
  return <svg class="evidence-chart" viewBox="0 0 300 90" role="img" aria-label={`evidence under the ${finding.rule} rule after ${finding.pairs} pairs`}>
    <line x1={4} x2={296} y1={y(finding.fails_at)} y2={y(finding.fails_at)} class="fails" /><text x={6} y={y(finding.fails_at) + 10}>fails</text>
    <line x1={4} x2={296} y1={y(finding.passes_at)} y2={y(finding.passes_at)} class="passes" /><text x={270} y={y(finding.passes_at) + 10}>passes</text>
    <path d={line(1)} class="harm" /><path d={line(2)} class="fine" /></svg>;
}

function Rule({ finding }: { finding: Finding }) {
  return <div><h4>Under the {finding.rule} rule</h4>
    <p class="quiet">{finding.pairs} pairs, mean result {number(finding.mean, 3)}</p>
    <Evidence name="that it is worse" value={finding.harm} bound={finding.fails_at} bad />
    <Evidence name="that it loses less than the bound" value={finding.harmless} bound={finding.passes_at} bad={false} />
    <Course finding={finding} /></div>;
}

function word(verb: string, path: string, says: string, danger = false, body?: unknown, method = "POST") {
  return { verb, danger, says: <p>{says}</p>,
    rehearse: async () => {
      const then = await (await request(method, `anneal/${path}`, { body, parameters: { dry_run: true } })).json() as AnnealNow;
      return <p>It would be <b>{then.anneal.state}</b>, at a share of {percent(then.share)}.</p>;
    },
    carryOut: () => request(method, `anneal/${path}`, { body }) };
}

function Begin() {
  const [name, setName] = useState("patch"), [key, setKey] = useState("patch"), [value, setValue] = useState(""), [versions, setVersions] = useState(400);
  const body = () => {
    let given: unknown = value;
    try { if (key !== "patch") given = JSON.parse(value); } catch { /* a text */ }
    const overrides = key.split(".").reverse().reduce<unknown>((inner, part) => ({ [part]: inner }), given);
    return { name, overrides, versions };
  };
  return <div class="row">
    <label>Name <input value={name} onInput={(e) => setName(e.currentTarget.value)} /></label>
    <label>Key of the game <input value={key} onInput={(e) => setKey(e.currentTarget.value)} /></label>
    <label>New value <input value={value} onInput={(e) => setValue(e.currentTarget.value)} /></label>
    <NumberField label="over versions" min={1} value={versions} onChange={setVersions} />
    <ActButton disabled={value.trim() ? "" : "the new value is missing"} act={{ verb: "Begin anneal", reasoned: true,
      says: <p>game.{key} becomes {value} in a growing share of games, from none to all over {versions} versions, while the guard watches.</p>,
      rehearse: async () => {
        const then = await post<Operation>("anneal", body(), { dry_run: true });
        return <p>Steps: {then.steps.map((s) => s.name).join(", ")}. A checkpoint to revert to is written first.</p>;
      },
      carryOut: (reason) => post("anneal", { ...body(), reason }) }} />
  </div>;
}

/** The change that is introduced into games, and the evidence of its guard. */
export function Anneal() {
  const now = anneal.value;
  const [share, setShare] = useState(25);
  useEffect(() => { if (now) setShare(Math.round(100 * now.share)); }, [now?.anneal.id]);
  const over = !now || !(LIVE.includes(now.anneal.state) || ["holding", "failed"].includes(now.anneal.state));
  return <section class="card"><h2>Anneal</h2>
    {now && <>
      <p><b>{now.anneal.id}</b>: {now.anneal.state}, {percent(now.share)} of games, attempt {now.anneal.attempt}. Base: version {now.anneal.base}.
        <br /><span class="quiet">The guard: {now.verdict}. {now.reason}</span></p>
      <progress max={1} value={now.share} aria-label="share of games with the change" />
      <p class="quiet"><code>{JSON.stringify(now.anneal.overrides)}</code></p>
      <div class="columns">{now.findings.map((f) => <Rule key={f.rule} finding={f} />)}</div>
      <p class="quiet">A harmless change is called harmful in at most {percent(now.guard_power.false_alarm)} of attempts; a loss of {number(now.guard_power.loss, 2)} is
        caught in {Object.entries(now.guard_power.caught).map(([k, v]) => `${percent(v, 0)} (${k})`).join(", ")}.</p>
      {!over && <div class="row">
        <ActButton act={word("Hold", "hold", "The share stays at its value, even after a pass.")} />
        <ActButton act={word("Go on", "resume", "The share grows again.")} />
        <NumberField label="share" unit="%" min={0} max={100} step="any" value={share} onChange={setShare} />
        <ActButton act={word("Set share", "share", `The share becomes ${share} %, and is held there.`, false, { share: share / 100 }, "PUT")} />
        <ActButton act={word("Promote", "promote", "The change becomes the game, whatever the guard says.", true)} />
        <ActButton act={word("Abort", "abort", "The change is removed from all games; the weights are not changed.", true)} />
        <ActButton act={word("Revert anneal", "revert", "The change is removed from all games, and the run reverts to the base version.", true)} />
      </div>}
    </>}
    {over && <><p class="quiet">{now ? "It is over. Another one:" : "Nothing is being annealed."}</p><Begin /></>}
  </section>;
}
