import { useEffect, useState } from "preact/hooks";
import { get } from "../../api/client";
import { fresh } from "../../api/live";
import type { Page, RunEvent } from "../../api/types";
import { Link } from "../../shell/link";
import { note, query } from "../../shell/route";
import { clock } from "../../text";
import { told } from "./told";

const PAGE = 200;

/** What was decided, when and by whom; filtered by the address, so that a filter can be sent. */
export function EventsPage() {
  const [old, setOld] = useState<RunEvent[]>([]);
  const [older, setOlder] = useState<string | null>(null);
  const [trouble, setTrouble] = useState("");
  const who = query.value.get("who") ?? "", words = query.value.get("words") ?? "";
  const more = (before?: string) => {
    get<Page<RunEvent>>("events", { limit: PAGE, before }).then((page) => {
      setOld((had) => (before ? [...had, ...page.items] : page.items));
      setOlder(page.older);
    }).catch((error: Error) => setTrouble(error.message));
  };
  useEffect(() => more(), []);
  const known = new Set(old.map((e) => e.id));
  const all = [...fresh.value.filter((e) => !known.has(e.id)), ...old];
  const names = [...new Set(all.map((e) => e.who))].sort();
  const wanted = words.toLowerCase();
  const shown = all.filter((e) => (!who || e.who === who) &&
    (!wanted || `${e.what} ${e.who} ${JSON.stringify(e.details)}`.toLowerCase().includes(wanted)));
  return <>
    <h1>Events</h1>
    <div class="row card">
      <label>Who <select value={who} onChange={(e) => note({ who: e.currentTarget.value || null })}>
        <option value="">anybody</option>{names.map((n) => <option key={n} value={n}>{n}</option>)}</select></label>
      <label>Words <input type="search" value={words} onInput={(e) => note({ words: e.currentTarget.value || null })} /></label>
      <span class="quiet" role="status">{shown.length} of {all.length}</span>
    </div>
    {trouble && <p class="bad" role="alert">{trouble}</p>}
    <div class="scroll card" tabIndex={0} role="region" aria-label="Events"><table>
      <thead><tr><th>when</th><th>who</th><th>what</th><th>particulars</th></tr></thead>
      <tbody>{shown.map((e) => <tr key={e.id}>
        <td class="no-wrap"><Link to={`/?at=${e.at.toFixed(0)}`}>{clock(e.at)}</Link></td>
        <td>{e.who}</td><td class="no-wrap">{e.what}</td><td class="quiet">{told(e.details)}</td></tr>)}</tbody></table></div>
    {older && <p><button type="button" onClick={() => more(older)}>Older</button></p>}
  </>;
}
