import { post } from "../../api/client";
import { operations } from "../../api/live";
import type { Operation, Step } from "../../api/types";
import { ActButton } from "../../components/act";
import { useNow } from "../../components/now";
import { number, span } from "../../text";

function took(step: Step, now: number): string {
  if (!step.started_at) return "";
  return span((step.ended_at ?? now) - step.started_at);
}

/** Numbers of a step's result, in a line. */
function found(result: Record<string, unknown>): string {
  return Object.entries(result).filter(([, v]) => typeof v === "number" || typeof v === "string").slice(0, 6)
    .map(([k, v]) => `${k} ${typeof v === "number" ? number(v, 4) : String(v).slice(0, 40)}`).join(" · ");
}

function Steps({ steps, now }: { steps: readonly Step[]; now: number }) {
  return <div class="scroll" tabIndex={0} role="region" aria-label="Steps"><table>
    <thead><tr><th>step</th><th>state</th><th>attempt</th><th>took</th><th>waits for</th><th>last error or result</th></tr></thead>
    <tbody>{steps.map((s) => <tr key={s.name} class={`step-${s.state}`}>
      <td>{s.name}</td><td>{s.state}</td><td>{s.attempt || ""}</td><td>{took(s, now)}</td><td>{s.waiting_for.join(", ")}</td>
      <td class={s.error ? "bad" : "quiet"}>{s.error || found(s.result)}</td></tr>)}</tbody></table></div>;
}

function One({ operation, open }: { operation: Operation; open: boolean }) {
  const now = useNow(), over = operation.ended_at !== null;
  const path = `operations/${operation.id}`;
  return <details open={open}>
    <summary><b>{operation.kind}</b> {operation.request.name} · {operation.state} · {operation.who}, {span(now - operation.created_at)} ago</summary>
    {operation.outcome && <p>{operation.outcome}</p>}
    <Steps steps={operation.steps} now={now} />
    {!over && <p class="buttons">
      {operation.request.hold && <ActButton act={{ verb: "Continue", reasoned: true,
        says: <p>Publishing comes next. After it, only a revert goes back.</p>,
        rehearse: async () => { await post(`${path}/continue`, {}, { dry_run: true }); return <p>It is at its hold.</p>; },
        carryOut: (reason) => post(`${path}/continue`, { reason }) }} />}
      <ActButton act={{ verb: "Cancel operation", danger: true, reasoned: true,
        says: <p>The operation is cancelled, and the run is rolled back.</p>,
        rehearse: async () => { await post(`${path}/cancel`, {}, { dry_run: true }); return <p>Nothing of it has been published.</p>; },
        carryOut: (reason) => post(`${path}/cancel`, { reason }) }} /></p>}
  </details>;
}

/** The operation under way and those that have ended, step by step. */
export function Operations() {
  const all = operations.value;
  return <section class="card"><h2>Operations</h2>
    {all.length === 0 && <p class="quiet">No surgery, check, anneal or revert has been requested yet.</p>}
    {all.slice(0, 8).map((o, i) => <One key={o.id} operation={o} open={i === 0} />)}
  </section>;
}
