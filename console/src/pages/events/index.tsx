import { useEffect } from "preact/hooks";
import { Link } from "../../shell/link";
import { note, query } from "../../shell/route";
import { dateTime } from "../../text";
import { follow, more, older, rows, trouble } from "./rows";
import { detailsText } from "./details";

/** Events of the run. The URL holds the filter, so that it can be shared. */
export function EventsPage() {
  const who = query.value.get("who") ?? "", words = query.value.get("words") ?? "";
  useEffect(follow, []);
  const all = rows.value;
  const names = [...new Set([...all.map((e) => e.who), ...(who ? [who] : [])])].sort();
  const wanted = words.toLowerCase();
  const shown = all.filter((e) => (!who || e.who === who) &&
    (!wanted || `${e.what} ${e.who} ${JSON.stringify(e.details)}`.toLowerCase().includes(wanted)));
  return <>
    <h1>Events</h1>
    <div class="row card">
      <label>Who <select value={who} onChange={(e) => note({ who: e.currentTarget.value || null })}>
        <option value="">anybody</option>{names.map((n) => <option key={n} value={n}>{n}</option>)}</select></label>
      <label>Words <input type="search" value={words} onInput={(e) => note({ words: e.currentTarget.value || null })} /></label>
      <span class="quiet" role="status">{shown.length} of {all.length}{older.value && ", and older ones"}</span>
    </div>
    {trouble.value && <p class="bad" role="alert">{trouble.value}</p>}
    <div class="scroll card" tabIndex={0} role="region" aria-label="Events"><table>
      <thead><tr><th>when</th><th>who</th><th>what</th><th>details</th></tr></thead>
      <tbody>{shown.map((e) => <tr key={e.id}>
        <td class="no-wrap"><Link to={`/?at=${e.at.toFixed(0)}`}>{dateTime(e.at)}</Link></td>
        <td>{e.who}</td><td class="no-wrap">{e.what}</td><td class="quiet">{detailsText(e.details)}</td></tr>)}</tbody></table></div>
    {older.value && <p><button type="button" onClick={() => void more()}>Older</button></p>}
  </>;
}
