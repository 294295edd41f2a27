// Report of a run as a single file. It uses the console's components with data embedded in the page, without requests.
import { render } from "preact";
import { useMemo } from "preact/hooks";
import "../style/base.css";
import "../games/games.css";
import type { Kind } from "../api/curves";
import { branches } from "../api/live";
import type { Picture } from "../components/chart";
import { Chart } from "../components/chart";
import { TimeBar } from "../components/timebar";
import { Viewer } from "../games/view/viewer.tsx";
import { detailsText } from "../pages/events/details";
import { SHEETS, ratingPictures } from "../pages/run/pictures";
import { theme, turn } from "../shell/theme";
import { dateTime } from "../text";
import { marks, recorded } from "../timeline";
import { film, report } from "./data";

const TERMS = 6; // maximum number of lines in a chart

/** Returns the chart of the largest reward terms; null without any. */
function rewards(): Picture | null {
  const data = report.curves.games;
  const size = (field: string): number => (data.fields[field]?.mean ?? []).reduce<number>((sum, v) => sum + Math.abs(v ?? 0), 0);
  const found = data.names.filter((n) => n.startsWith("rewards/") && size(n) > 0).sort((a, b) => size(b) - size(a)).slice(0, TERMS);
  if (!found.length) return null;
  return { title: "Reward by term", unit: "a hero and game, weighted", note: "Before the other team's is subtracted; the largest.",
           curves: found.map((field) => ({ field, label: field.slice("rewards/".length).replaceAll("_", " ") })) };
}

function Charts() {
  const sheets = useMemo<readonly [Kind, readonly Picture[]][]>(() => {
    const terms = rewards();
    return [["ratings", ratingPictures(report.curves.ratings.names)],
            ...SHEETS.map((s): [Kind, readonly Picture[]] => [s.kind, s.kind === "games" && terms ? [...s.pictures, terms] : s.pictures])];
  }, []);
  return <div class="charts">{sheets.flatMap(([kind, pictures]) =>
    pictures.map((p) => <Chart key={`${kind}/${p.title}`} picture={p} data={report.curves[kind]} />))}</div>;
}

function Film() {
  const data = useMemo(film, []);
  return <section aria-label="The newest film"><h2>A game of {report.film?.name}</h2>
    <Viewer address="" data={data} still live={false} title={`Game of ${report.film?.name ?? ""}`} /></section>;
}

function ReportPage() {
  return <>
    <header class="bar"><span class="brand">Five</span><span class="run-name">{report.name}</span><span class="quiet">made {dateTime(report.made)}</span>
      <span class="spring" /><button type="button" onClick={turn} aria-label={theme.value === "dark" ? "Light colours" : "Dark colours"}>{theme.value === "dark" ? "☀" : "☾"}</button></header>
    <main id="content">
      <h1>{report.name}</h1>
      <dl class="facts">{report.facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
      <h2 class="sr">Charts</h2>
      <TimeBar />
      <Charts />
      {report.film ? <Film /> : <p class="quiet">{report.note}</p>}
      <h2>Events</h2>
      <div class="scroll tall card" tabIndex={0} role="region" aria-label="Events"><table>
        <thead><tr><th>when</th><th>who</th><th>what</th><th>details</th></tr></thead>
        <tbody>{report.events.map((e) => <tr key={e.id}><td class="no-wrap">{dateTime(e.at)}</td><td>{e.who}</td><td class="no-wrap">{e.what}</td>
          <td class="quiet">{detailsText(e.details)}</td></tr>)}</tbody></table></div>
    </main>
  </>;
}

const ends = (Object.values(report.curves)).flatMap((c) => (c.first !== null && c.last !== null ? [c.first, c.last] : []));
if (ends.length) recorded.value = { from: Math.min(...ends), to: Math.max(...ends) };
marks.value = report.marks;
branches.value = report.branches;
const root = document.getElementById("page");
if (root) {
  root.textContent = ""; // remove the message for browsers without scripts
  render(<ReportPage />, root);
}
