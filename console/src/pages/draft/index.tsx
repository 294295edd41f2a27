import { useEffect, useState } from "preact/hooks";
import { Problem, get } from "../../api/client";
import { changeCount } from "../../api/live";
import { errorText } from "../../components/act";
import { Link } from "../../shell/link";
import { note } from "../../shell/route";
import { number, percent } from "../../text";
import { Reliability, Support, pairText } from "./known";
import type { Calibration, Draft, Table, Team } from "./state";
import { ban, banned, begin, dire, order, pick, radiant, said, side, table, undo } from "./state";
import "./draft.css";

const AGAIN_MS = 2000;  // after an error that may pass: the controller is away, or analyses too many drafts
const NAMES: Record<Team, string> = { R: "Radiant", D: "Dire" };

/** Reads the draft in the URL, and picks for the model when it is the model's turn. */
function useDraft(): { draft: Draft | null; trouble: string; solving: boolean } {
  const [draft, setDraft] = useState<Draft | null>(null);
  const [attempt, setAttempt] = useState(0);
  const [answer, setAnswer] = useState({ asked: "", trouble: "" });  // the state that was last answered, and the error
  const asked = [radiant.value, dire.value, banned.value, order.value, table.value].join("|");
  // A click changes the URL at once, so the second click of a double click finds a disabled button.
  const solving = answer.asked !== asked;
  useEffect(() => {
    let here = true, timer = 0;
    get<Draft>("draft", { radiant: radiant.value.join(","), dire: dire.value.join(","), banned: banned.value.join(","),
                          order: order.value || undefined, table: table.value || undefined })
      .then((found) => { if (here) { setDraft(found); setAnswer({ asked, trouble: "" }); } })
      .catch((error: unknown) => {
        if (!here) return;
        setAnswer({ asked, trouble: errorText(error) });
        if (!(error instanceof Problem) || error.isTemporary)
          timer = window.setTimeout(() => setAttempt(attempt + 1), AGAIN_MS);
      });
    return () => { here = false; clearTimeout(timer); };
  }, [asked, attempt]);
  const best = draft?.choices[0]?.hero, moving = draft?.to_move ?? "", isCurrent = !solving && !answer.trouble;
  useEffect(() => {
    if (isCurrent && side.value && moving && moving !== side.value && best) pick(moving, best);
  }, [isCurrent, side.value, moving, best]);
  return { draft, trouble: answer.trouble, solving };
}

function TeamCard({ team, draft }: { team: Team; draft: Draft }) {
  const picks = team === "R" ? draft.radiant : draft.dire;
  const places = [...Array(draft.team).keys()];
  return <section class={`card team team-${team}`} aria-label={NAMES[team]}>
    <h2>{NAMES[team]} <span class="quiet">{side.value === team ? "you" : side.value ? "the model" : ""}</span></h2>
    <ol>{places.map((i) => <li key={i} class={picks[i] ? "" : "quiet"}>{picks[i] ? said(picks[i]) : "open"}</li>)}</ol>
  </section>;
}

function Choices({ draft, solving }: { draft: Draft; solving: boolean }) {
  const team = draft.to_move;
  if (!team) return <section class="card"><h2>The draft is over</h2>
    <p>By the win head Radiant wins <b>{percent(draft.win)}</b> of such games, Dire {percent(1 - draft.win)}.</p>
    <p><Link to={`/play?radiant=${draft.radiant.join(",")}&dire=${draft.dire.join(",")}${side.value ? `&side=${side.value}` : ""}`}>Play these line-ups</Link></p></section>;
  return <section class="card"><h2>{NAMES[team]} picks{side.value && side.value !== team ? ": the model" : ""}</h2>
    <div class="scroll" tabIndex={0} role="region" aria-label="Open picks"><table aria-busy={solving}>
      <thead><tr><th>hero</th><th>{NAMES[team]} wins</th><th><span class="sr">share</span></th><th>in teams</th><th>rarest pair, games</th>
        <th><span class="sr">act</span></th></tr></thead>
      <tbody>{draft.choices.map((c) => <tr key={c.hero}>
        <td>{said(c.hero)}</td><td class="no-wrap">{percent(c.own)}</td>
        <td class="meter-place"><meter min={0} max={1} value={c.own} aria-label={`${NAMES[team]} wins with ${said(c.hero)}`} /></td>
        <td>{c.played === null ? "?" : number(c.played, 0)}</td>
        <td class={c.rarest?.games === 0 ? "warn" : ""}>{pairText(c.rarest)}</td>
        <td class="no-wrap"><button type="button" disabled={solving} aria-label={`Pick ${said(c.hero)}`} onClick={() => pick(team, c.hero)}>Pick</button>{" "}
          <button type="button" disabled={solving} aria-label={`Ban ${said(c.hero)}`} onClick={() => ban(c.hero)}>Ban</button></td></tr>)}</tbody></table></div>
  </section>;
}

/** Draft against the model: the win probability of each open pick, and the evidence for it. */
export function DraftPage() {
  const { draft, trouble, solving } = useDraft();
  const [tables, setTables] = useState<readonly Table[]>([]);
  const [calibration, setCalibration] = useState<Calibration | null>(null);
  useEffect(() => {
    get<{ tables: Table[] }>("draft/tables").then((v) => setTables(v.tables)).catch(() => setTables([]));
    get<Calibration>("draft/calibration").then(setCalibration).catch(() => setCalibration(null));
  }, [Math.floor(changeCount.value / 20)]);
  const made = radiant.value.length + dire.value.length;
  return <>
    <h1>Draft</h1>
    <div class="row card">
      <label>By the win head of <select value={table.value} onChange={(e) => note({ table: e.currentTarget.value || null })}>
        <option value="">the newest table</option>{tables.map((t) => <option key={t.name} value={t.name}>{t.name}, {t.heroes.length} heroes</option>)}</select></label>
      <label>You pick for <select value={side.value} onChange={(e) => note({ side: e.currentTarget.value || null })}>
        <option value="">both teams</option><option value="R">Radiant</option><option value="D">Dire</option></select></label>
      <label>Order <input value={order.value} placeholder={draft?.order ?? ""} pattern="[RDrd]*" size={12} spellcheck={false}
        onChange={(e) => note({ order: e.currentTarget.value || null, radiant: null, dire: null })} /></label>
      <button type="button" aria-disabled={made === 0} onClick={() => { if (draft && made) undo(draft.order); }}>Take back</button>
      <button type="button" onClick={begin}>New draft</button>
      <span class="quiet" role="status">{solving ? "solving…" : ""}</span>
    </div>
    {trouble && <p class="bad pre" role="alert">{trouble}</p>}
    {banned.value.length > 0 && <p class="row">Banned: {banned.value.map((hero) =>
      <button key={hero} type="button" aria-label={`Take back the ban of ${said(hero)}`} onClick={() => ban(hero)}>{said(hero)} ×</button>)}</p>}
    {draft && !trouble && <>
      <p class="worth" role="status">Radiant wins <b>{percent(draft.win)}</b>, Dire <b>{percent(1 - draft.win)}</b>
        {draft.to_move && <span class="quiet">, if both pick their best from here</span>}</p>
      <div class="columns"><TeamCard team="R" draft={draft} /><TeamCard team="D" draft={draft} /></div>
      <Choices draft={draft} solving={solving} />
      <div class="columns"><Support draft={draft} />{calibration && <Reliability found={calibration} />}</div>
      <p class="quiet small">Read from version {String(draft.facts.version ?? "?")}'s win head at the first observation of real games, {number(draft.line_ups, 0)} line-ups;
        order {draft.order}. {draft.shared && "The pool is too small for two teams: both may pick the same hero, as in training."}</p>
    </>}
  </>;
}
