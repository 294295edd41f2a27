import { useEffect, useState } from "preact/hooks";
import { get, post } from "../../api/client";
import { operations } from "../../api/live";
import { overview } from "../../api/run";
import type { Operation, Preview, Slice, Target } from "../../api/types";
import { ActButton } from "../../components/act";
import { useOrdered } from "../../components/ordered";

const SHOWN = 300;
const AGAIN_MS = 5000;  // between requests for the versions after an error

function Undone({ preview }: { preview: Preview }) {
  const rows: [string, string][] = [
    ["versions", preview.versions.map((v) => `${v.first} to ${v.last}`).join(", ")],
    ["surgeries", preview.surgeries.map((s) => `${s.name} (version ${s.version})`).join(", ")],
    ["record", preview.record.join("; ")],
    ["schedules", preview.schedules.map((s) => `${s.name} (${s.who})`).join(", ")],
    ["opponents that leave the pool", preview.opponents.join(", ")],
    ["references of the rating", preview.references.join(", ")],
    ["anneal that ends", preview.anneal],
  ];
  return <>
    <p>{preview.complete ? "A checkpoint is stored: Adam's moments and the schedules are restored." : "Only the parameters are stored: Adam's moments begin at zero, the schedules are not changed."}</p>
    <dl class="undone">{rows.filter(([, v]) => v).map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{v}</dd></div>)}</dl>
    <p class="quiet">Nothing is deleted: the later versions stay as a branch, to which the run can revert.</p></>;
}

/** Back to an older version, with what that undoes listed first. */
export function Revert() {
  const [{ items: targets, total }, setTargets] = useState<Slice<Target>>({ items: [], total: 0, next: null });
  const [to, setTo] = useState("");
  const [trouble, setTrouble] = useState("");
  const done = operations.value.filter((o) => o.ended_at !== null).length;
  const epoch = overview.value?.epoch;
  const ordered = useOrdered();
  const read = () => ordered(get<Slice<Target>>("revert/targets", { limit: SHOWN }),
                             (found) => { setTargets(found); setTrouble(""); }, (error) => setTrouble(error.message));
  useEffect(read, [done, epoch]);
  useEffect(() => {
    if (!trouble) return;
    const timer = setInterval(read, AGAIN_MS);
    return () => clearInterval(timer);
  }, [trouble]);
  return <section class="card"><h2>Revert</h2>
    {trouble && <p class="bad" role="alert">{trouble}</p>}
    {total > targets.length && <p class="quiet">The newest {targets.length} of {total} versions are listed; <code>five revert --to</code> takes any.</p>}
    <div class="row">
      <label>Back to version <select value={to} onFocus={read} onChange={(e) => setTo(e.currentTarget.value)}>
        <option value="">choose</option>
        {targets.map((t) => <option key={t.version} value={t.version}>{t.version}{t.complete ? "" : ", without moments"}{t.line ? "" : ", of a branch"}</option>)}
      </select></label>
      <ActButton disabled={to ? "" : "choose a version"} act={{ verb: "Revert run", danger: true, reasoned: true,
        says: <p>The run goes back to version {to} and on from there, under a new number, in the next epoch. What would be undone:</p>,
        rehearse: async () => {
          const [preview] = await Promise.all([get<Preview>(`revert/${to}`),
            post<Operation>("revert", { to: Number(to), epoch }, { dry_run: true })]);
          return <Undone preview={preview} />;
        },
        // The preview's epoch: the controller refuses the request if the run is in another one by then.
        carryOut: (reason) => post("revert", { to: Number(to), epoch, reason }) }} />
    </div>
  </section>;
}
