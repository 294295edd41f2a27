import { useEffect, useRef, useState } from "preact/hooks";
import { signal } from "@preact/signals";
import { Problem, get, post } from "../../api/client";
import { operations } from "../../api/live";
import { isOperator } from "../../api/session";
import type { Check, Operation, Planned } from "../../api/types";
import { ActButton, errorText } from "../../components/act";
import { number } from "../../text";
import { RehearseButton, Rehearsals } from "./rehearsal";

const PLAN = `name: wider
parent: SCHEMA   # the model schema that the plan starts from; \`derive\` fills it in
warm_up_versions: 8
steps:
- kind: grow_lstm
  to: 384
`;

const TYPED_MS = 600;

// Chosen in the dialog after the action was created; the action reads it when it runs.
const hold = signal(true);

function Hold() {
  return <p><label><input type="checkbox" checked={hold.value} onChange={(e) => { hold.value = e.currentTarget.checked; }} /> Hold before publishing, until I continue it</label></p>;
}

function Changes({ planned }: { planned: Planned }) {
  return <>
    <div class="scroll" tabIndex={0} role="region" aria-label="Changes"><table>
      <thead><tr><th>#</th><th>step</th><th>what</th><th>promise</th><th>lost</th><th>tensors</th><th>parameters</th></tr></thead>
      <tbody>{planned.changes.map((c) => <tr key={c.number}>
        <td>{c.number}</td><td>{c.kind}</td><td>{c.what}</td><td>{c.promise}</td><td class="warn">{c.lossy}</td><td>{c.tensors}</td>
        <td>{number(c.parameters_before, 0)} → {number(c.parameters_after, 0)}</td></tr>)}</tbody></table></div>
    {planned.lint.length > 0 && <ul class="lint">{planned.lint.map((n, i) =>
      <li key={i} class={n.level === "warning" ? "warn" : "quiet"}><b>{n.code}</b>{n.step ? ` (step ${n.step})` : ""}: {n.message}</li>)}</ul>}
    {planned.anneals.map((a, i) => <p key={i} class="quiet">Left to an anneal over {a.versions} versions: <code>{JSON.stringify(a.values)}</code></p>)}
  </>;
}

function Report({ check }: { check: Check }) {
  const report = (check.result.report ?? {}) as { difference?: Record<string, number>; problems?: string[]; bounds?: Record<string, number> };
  const rows = Object.entries(report.difference ?? {}).filter(([, v]) => typeof v === "number");
  return <div>
    <p class={check.result.ok ? "good" : "bad"}>{check.result.ok ? "Within its bounds: it can be applied." : `Not to be applied: ${check.result.why ?? "see below"}`}
      {check.result.version !== undefined && ` Measured on version ${check.result.version}, ${check.result.samples ?? 0} samples, by ${check.who}.`}</p>
    <dl class="facts">{rows.map(([k, v]) => <div key={k}><dt>{k.replaceAll("_", " ")}</dt><dd>{number(v, 6)}
      {report.bounds?.[k] !== undefined && <span class="quiet"> of {number(report.bounds[k], 6)}</span>}</dd></div>)}</dl>
    {(report.problems ?? []).map((p) => <p key={p} class="bad">{p}</p>)}
  </div>;
}

/** Surgery: a plan is pasted or derived, shown, measured, and applied. */
export function Surgery() {
  const [plan, setPlan] = useState("");
  const [name, setName] = useState("wider");
  const [wishes, setWishes] = useState("model.lstm=384");
  const [planned, setPlanned] = useState<Planned | null>(null);
  const [digest, setDigest] = useState("");
  const [check, setCheck] = useState<Check | null>(null);
  const [trouble, setTrouble] = useState("");
  const changes = useRef(0);  // number of changes of the plan: the answer to an earlier request does not replace it
  const going = operations.value.find((o) => o.kind === "check" && o.request.digest === digest);
  const busy = going !== undefined && going.ended_at === null;

  useEffect(() => {
    if (!digest || busy) return;
    let here = true;
    get<Check>(`surgery/checks/${digest}`).then((found) => { if (here) { setCheck(found); setTrouble(""); } })
      .catch((error: unknown) => {
        if (!here) return;
        setCheck(null);
        // 404: the plan has not been checked yet.
        if (!(error instanceof Problem && error.status === 404)) setTrouble(errorText(error));
      });
    return () => { here = false; };
  }, [digest, busy, going?.id]);

  const derive = (event: Event) => {
    event.preventDefault();
    setTrouble("");
    const change = ++changes.current;
    post<Planned>("surgery/plan", { name, overrides: wishes.split(/\s+/).filter(Boolean) }).then((found) => {
      if (change !== changes.current) return;
      setPlanned(found); setPlan(found.plan); setDigest(found.digest); setCheck(null);
    }).catch((error: unknown) => { if (change === changes.current) setTrouble(errorText(error)); });
  };
  const written = (text: string) => {
    changes.current++;
    setPlan(text); setPlanned(null); setDigest(""); setCheck(null); setTrouble("");
  };
  // A pasted or edited plan is parsed after typing stops: its table, its lint, and the results of a check.
  useEffect(() => {
    if (planned || !plan.trim() || !isOperator.value) return;
    let here = true;
    const t = setTimeout(() => {
      post<Planned>("surgery/read", { plan }).then((found) => {
        if (here) { setPlanned(found); setDigest(found.digest); setTrouble(""); }
      }).catch((error: unknown) => { if (here) setTrouble(errorText(error)); });
    }, TYPED_MS);
    return () => { here = false; clearTimeout(t); };
  }, [plan, planned, isOperator.value]);

  return <section class="card"><h2>Surgery</h2>
    <p class="quiet">A plan changes the model, what it sees and does, or the game. It is measured on copies first; until it is published it can be cancelled.</p>
    <form class="row" onSubmit={derive}>
      <label>Name <input value={name} pattern="[a-z0-9][a-z0-9\-]*" onInput={(e) => setName(e.currentTarget.value)} /></label>
      <label class="grow">What the agent is to become <input value={wishes} class="wide" spellcheck={false}
        onInput={(e) => setWishes(e.currentTarget.value)} /></label>
      <button type="submit" aria-disabled={!isOperator.value}>Derive plan</button>
    </form>
    <label class="block">Plan <textarea rows={9} spellcheck={false} value={plan} placeholder={PLAN}
      onInput={(e) => written(e.currentTarget.value)} /></label>
    {trouble && <p class="bad pre" role="alert">{trouble}</p>}
    {planned && <Changes planned={planned} />}
    <div class="row">
      <ActButton disabled={plan.trim() ? "" : "there is no plan yet"} act={{ verb: "Check plan", reasoned: true,
        says: <p>The optimizer brings the newest version and samples of the run's own games through the plan and compares, beside training. Nothing is changed.</p>,
        rehearse: async () => {
          const then = await post<Operation>("surgery/check", { plan }, { dry_run: true });
          return <p>Plan <b>{then.request.name}</b> can be measured in epoch {then.request.epoch}.</p>;
        },
        carryOut: (reason) => post<Operation>("surgery/check", { plan, reason }),
        done: (o) => setDigest((o as Operation).request.digest) }} />
      <RehearseButton plan={plan} name={planned?.name ?? ""} />
      <ActButton disabled={check?.result.ok ? "" : "only a plan that has passed its check can be applied"} act={{ verb: "Apply plan", danger: true, reasoned: true,
        says: <><p>The run is paused, the new checkpoint made and measured, and the run cut over to it in the next epoch; then it continues by itself.</p>
          <Hold /></>,
        rehearse: async () => {
          const then = await post<Operation>("surgery/apply", { digest, hold: hold.value }, { dry_run: true });
          return <p>Steps: {then.steps.map((s) => s.name).join(", ")}. Warm-up: {then.request.warm_up_versions} versions.</p>;
        },
        carryOut: (reason) => post<Operation>("surgery/apply", { digest, hold: hold.value, reason }) }} />
      {busy && <span role="status" class="quiet">is being measured…</span>}
    </div>
    {check && <Report check={check} />}
    <Rehearsals digest={digest} name={planned?.name ?? ""} />
  </section>;
}
