// Rehearsal of a plan on a fork of the run: request, progress, cancellation. The worker writes its progress.
import { signal } from "@preact/signals";
import { post } from "../../api/client";
import { rehearsed } from "../../api/live";
import type { Rehearsal } from "../../api/types";
import { ActButton } from "../../components/act";
import { useNow } from "../../components/now";
import { NumberField } from "../../components/number";
import { percent, span } from "../../text";

const OPEN = new Set(["waiting", "preparing", "warming", "learning", "playing"]);

// Chosen in the dialog after the action was created; the action reads them when it runs.
const versions = signal(10);
const games = signal(100);

const command = (name: string) => `five surgery rehearse ${name || "plan"}.yaml --versions ${versions.value} --games ${games.value}`;

function Scope() {
  return <div class="row">
    <NumberField label="Versions to learn" min={1} max={100000} value={versions.value}
                 onChange={(value) => { versions.value = value; }} />
    <NumberField label="Games of the match" min={2} max={10000} value={games.value}
                 onChange={(value) => { games.value = value; }} />
  </div>;
}

export function RehearseButton({ plan, name }: { plan: string; name: string }) {
  const { worker, items } = rehearsed.value;
  const going = items.find((r) => OPEN.has(r.state));
  const body = (reason?: string) => ({ plan, versions: versions.value, games: games.value, reason });
  const why = !plan.trim() ? "there is no plan yet" : !worker ? "no process of this run can fork it: see below"
    : going ? `a rehearsal of ${going.name} goes on` : "";
  return <ActButton disabled={why} act={{ verb: "Rehearse plan", reasoned: true,
    says: <><p>A fork of the run on {worker?.host} learns under the plan and then plays the version before it, in pairs of games.
      The run itself goes on; it shares the machine's processors and memory.</p><Scope /></>,
    rehearse: async () => {
      const then = await post<Rehearsal>("surgery/rehearse", body(), { dry_run: true });
      return <p>Plan <b>{then.name || name}</b> can be rehearsed. By hand: <code>{command(then.name)}</code></p>;
    },
    carryOut: (reason) => post<Rehearsal>("surgery/rehearse", body(reason)) }} />;
}

/** Progress of a rehearsal: its text, and the steps done of all. */
function where(r: Rehearsal): { says: string; done?: number; of?: number } {
  const v = r.version ?? 0, first = r.first ?? 0, warm = r.warm ?? 0, until = r.until ?? 0;
  switch (r.state) {
    case "waiting": return { says: "waits to be taken" };
    case "preparing": return { says: "makes the fork" };
    case "warming": return { says: `warms up: version ${v - first} of ${warm - first}`, done: v - first, of: warm - first };
    case "learning": return { says: `learns: version ${v - warm} of ${until - warm}`, done: v - warm, of: until - warm };
    case "playing": {
      const all = r.scope.games + r.scope.games % 2;
      return { says: `plays: ${r.played} of ${all} games`, done: r.played, of: all };
    }
    default: return { says: r.state };
  }
}

function Result({ result }: { result: NonNullable<Rehearsal["result"]> }) {
  return <p class={result.worse ? "bad" : "good"}>Won {result.won}, drawn {result.drawn}, lost {result.lost}
    {" "}against the version before; score {percent(result.score, 0)} ({(100 * result.low).toFixed(0)} to {percent(result.high, 0)}, 95 % confidence):
    {" "}{result.worse ? "worse than before" : result.low > 0.5 ? "better than before" : "not worse, as far as these games tell"}.</p>;
}

function One({ r }: { r: Rehearsal }) {
  const time = useNow(), now = where(r), open = OPEN.has(r.state), path = `surgery/rehearsals/${r.id}`;
  return <div>
    <p><b>Rehearsal of {r.name}</b>, <span role="status">{now.says}</span> <span class="quiet">
      · {r.who}{r.by === "command" ? ", by the command" : ""}, {span(time - r.asked_at)} ago{r.fork && ` · fork ${r.fork}`}</span></p>
    {now.of !== undefined && <progress max={Math.max(now.of, 1)} value={now.done} aria-label={now.says} />}
    {r.result && <Result result={r.result} />}
    {r.error && <p class="bad pre">{r.error}</p>}
    {open && <p class="buttons">{r.cancel ? <span class="quiet">is being ended, by {r.cancel.who}</span>
      : <ActButton act={{ verb: "Cancel rehearsal", danger: true, reasoned: true,
        says: <p>The fork ends, and no match is played. The run notices nothing.</p>,
        rehearse: async () => { await post(`${path}/cancel`, {}, { dry_run: true }); return <p>It can be ended now.</p>; },
        carryOut: (reason) => post(`${path}/cancel`, { reason }) }} />}</p>}
  </div>;
}

/** The newest rehearsal of the plan, a running one of another plan, and the command if this run has no worker. */
export function Rehearsals({ digest, name }: { digest: string; name: string }) {
  const { worker, items } = rehearsed.value;
  const shown = items.filter((r, i) => OPEN.has(r.state) || (r.digest === digest && items.findIndex((o) => o.digest === digest) === i));
  return <>
    {shown.map((r) => <One key={r.id} r={r} />)}
    {!worker && <p class="quiet">A rehearsal is a fork of the run, for which <code>five train</code> has to hold the run on a machine.
      Where it holds a copy of this one, with the plan in a file: <code class="copied">{command(name)}</code></p>}
  </>;
}
