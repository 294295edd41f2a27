import { useEffect } from "preact/hooks";
import { signal } from "@preact/signals";
import { Problem, get } from "../../api/client";
import { base } from "../../base";
import { Link } from "../../shell/link";
import { path } from "../../shell/route";
import { clock } from "../../games/reading.ts";
import { Viewer } from "../../games/view/viewer.tsx";
import { dateTime } from "../../text";
import "../../games/games.css";

interface Listed {
  game: string; source: string; players?: unknown; kills?: unknown; net_worth?: unknown; time?: unknown; wall_seconds?: unknown;
  kind?: unknown; watched?: number; variant?: unknown;
}
interface Replay { name: string; bytes: number; facts: Record<string, unknown> }

const LOOK_MS = 2000, LOOK_REPLAYS = 15; // replays are polled every so many polls
const games = signal<readonly Listed[] | null>(null);
const replays = signal<readonly Replay[] | null>(null);
const problem = signal(""), wrongFile = signal("");
const file = signal<{ name: string; data: Uint8Array<ArrayBuffer> } | null>(null);
const MOST_FILE = 256 << 20; // bytes, the limit of dota.spectator.recording

const pair = (v: unknown): readonly [string, string] => Array.isArray(v) ? [String(v[0] ?? ""), String(v[1] ?? "")] : ["", ""];

function useLists(): void {
  useEffect(() => {
    let looks = 0, ended = false, timer = 0;
    const look = async (): Promise<void> => {
      try {
        games.value = (await get<{ games: Listed[] }>("games")).games;
        if (looks % LOOK_REPLAYS === 0) replays.value = (await get<{ replays: Replay[] }>("replays")).replays;
        looks++;
        problem.value = "";
      } catch (error) {
        problem.value = error instanceof Problem ? error.message : String(error);
      }
      // Services list their games while somebody watches; a page in the background does not request it.
      if (!ended) timer = window.setTimeout(() => void (document.hidden ? wait() : look()), LOOK_MS);
    };
    const wait = (): void => { if (!ended) timer = window.setTimeout(() => void (document.hidden ? wait() : look()), LOOK_MS); };
    void look();
    return () => { ended = true; clearTimeout(timer); };
  }, []);
}

function Wall() {
  useLists();
  const found = games.value, recorded = replays.value;
  return <>
    <h1>Games in progress</h1>
    {problem.value && <p role="alert" class="problem">{problem.value}</p>}
    {!found ? <p class="quiet">Asking who plays…</p> : !found.length ? <p class="quiet">None is listed yet. Sources answer within some seconds, while the run plays.</p> :
      <ul class="wall">{found.map((g) => {
        const [radiant, dire] = pair(g.players), kills = pair(g.kills), worth = pair(g.net_worth), pace = Number(g.time) > 0 ? Number(g.time) / Number(g.wall_seconds) : 0;
        return <li key={g.game}><Link to={`/games/live/${g.game}`}>
          <span class="side radiant">{radiant}</span><span class="score">{kills[0]} : {kills[1]}</span><span class="side dire">{dire}</span>
          <span class="quiet">{typeof g.time === "number" ? clock(g.time) : "begins"} · net worth {worth[0]} : {worth[1]}{pace > 0 && ` · ${pace.toFixed(1)}× real time`}</span>
          <span class="quiet">{String(g.kind ?? "")} · {g.source}{g.watched ? ` · ${g.watched} watch` : ""}</span></Link></li>;
      })}</ul>}
    <h1>Recordings</h1>
    <FromFile />
    {!recorded ? <p class="quiet">Looking…</p> : !recorded.length ? <p class="quiet">There is none yet; each rated version leaves one.</p> :
      <table class="replays"><thead><tr><th scope="col">Recording</th><th scope="col">Radiant</th><th scope="col">Dire</th><th scope="col">Kills</th><th scope="col">Length</th><th scope="col">Won</th><th scope="col">Recorded</th></tr></thead>
        <tbody>{recorded.map((r) => {
          const [radiant, dire] = pair(r.facts.players), kills = pair(r.facts.kills), seconds = Number(r.facts.seconds), at = Number(r.facts.at);
          return <tr key={r.name}><th scope="row"><Link to={`/games/replay/${r.name}`}>{r.name}</Link></th><td>{radiant}</td><td>{dire}</td><td>{kills[0]} : {kills[1]}</td>
            <td>{seconds > 0 ? clock(seconds) : ""}</td><td>{["Radiant", "Dire", "nobody"][Number(r.facts.winner)] ?? ""}</td><td>{at > 0 ? dateTime(at) : ""}</td></tr>;
        })}</tbody></table>}
  </>;
}

const ADDRESSES: Readonly<Record<string, (name: string) => string>> = {
  live: (name) => `${base}/v1/games/${name}/live`, replay: (name) => `${base}/v1/replays/${name}`, played: (name) => `${base}/v1/play/recordings/${name}`,
};

/** Opens a recording from a file. It is not sent anywhere. */
function FromFile() {
  const read = async (input: HTMLInputElement): Promise<void> => {
    const given = input.files?.[0];
    if (!given) return;
    wrongFile.value = "";
    if (given.size > MOST_FILE) { wrongFile.value = "It is larger than any recording."; return; }
    try {
      file.value = { name: given.name, data: new Uint8Array(await given.arrayBuffer()) };
    } catch {
      wrongFile.value = "It cannot be read.";
    }
  };
  return <p><label>Open a recording from a file <input type="file" accept=".view" onChange={(event) => void read(event.currentTarget)} /></label>
    {wrongFile.value && <span role="alert" class="problem"> {wrongFile.value}</span>}</p>;
}

/** Lists of games in progress and of recordings, and below its own path each of them. */
export function GamesPage() {
  const [, , kind, name] = path.value.split("/");
  const at = name && kind && ADDRESSES[kind];
  if (at) {
    const address = at(encodeURIComponent(name));
    return <><p class="back"><Link to="/games">All games</Link></p><h1 class="sr">Game {name}</h1><Viewer key={address} address={address} live={kind === "live"} title={name} /></>;
  }
  if (file.value) {
    const { name: title, data } = file.value;
    return <><p class="back"><button type="button" onClick={() => { file.value = null; }}>All games</button></p><h1 class="sr">{title}</h1><Viewer key={title} address={title} live={false} title={title} data={data} /></>;
  }
  return <Wall />;
}
