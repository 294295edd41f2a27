import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { Problem, get, post } from "../../api/client";
import { isOperator, who } from "../../api/session";
import { errorText } from "../../components/act";
import { Link } from "../../shell/link";
import { Again } from "../../play/view/again.tsx";
import { go, query } from "../../shell/route";
import { clock, plain } from "../../games/reading.ts";
import { dateTime, number, rating } from "../../text";

interface Offer {
  server: boolean; why?: string; mode: string; patch?: string; heroes_per_team: number; heroes: string[]; versions: number[]; bots: string[];
  spectator_delay_seconds?: number;
}
interface Seat { hero: number; name: string; team: number; who: string | null; held: boolean }
interface Listed { game: string; running: boolean; time?: number; seats: Seat[]; version?: number | null; opened_by?: string }
interface Recorded { game: string; bytes: number; players: readonly string[]; people: readonly string[]; seconds: number; at: number; winner: number; kills: readonly number[] }
interface Rated { name: string; mu: number; sigma: number; won: number; lost: number; drawn: number; abandoned: number }

const LOOK_MS = 3000;
const TEAMS = ["Radiant", "Dire"], WINNERS = ["nobody", "Radiant", "Dire", "nobody: a draw"];

/** Games in progress, and people's ratings. */
function Going({ games, ratings, delay }: { games: readonly Listed[]; ratings: readonly Rated[]; delay: number | undefined }) {
  return <div class="columns">
    <section class="card" aria-label="Games"><h2>Games that are played</h2>
      {!games.length ? <p class="quiet">None.</p> : <ul class="going">{games.map((g) => {
        const mine = g.seats.some((s) => s.who === who.value?.name), people = [...new Set(g.seats.map((s) => s.who).filter(Boolean))];
        return <li key={g.game}><b>{people.join(", ") || "nobody"}</b> {g.time !== undefined && clock(g.time)} {typeof g.version === "number" && g.version >= 0 && `version ${g.version}`} <span class="spring" />
          {mine && <Link to={`/play/${g.game}`}>Go on playing</Link>}{" "}<Link to={`/play/${g.game}?spectate=1`}>Watch</Link></li>;
      })}</ul>}
      {delay !== undefined && games.length > 0 && <p class="quiet small">Who watches sees it {number(delay, 0)} s later.</p>}</section>
    <section class="card" aria-label="Ratings"><h2>Ratings of people</h2>
      {!ratings.length ? <p class="quiet">Nobody has finished a game yet.</p> : <table><thead><tr><th>name</th><th>rating</th><th>won</th><th>lost</th><th>drawn</th><th>left</th></tr></thead>
        <tbody>{ratings.map((r) => <tr key={r.name}><td>{r.name}</td><td>{rating(r.mu, r.sigma)}</td><td>{r.won}</td><td>{r.lost}</td><td>{r.drawn}</td><td>{r.abandoned}</td></tr>)}</tbody></table>}</section>
  </div>;
}

/** Finished games, to watch or to save. */
function Over({ recorded }: { recorded: readonly Recorded[] }) {
  return <section class="card" aria-label="Recordings"><h2>Played games</h2>
    {!recorded.length ? <p class="quiet">A game that somebody has played can be watched here once it is over.</p> : <>
      <table><thead><tr><th>ended</th><th>Radiant</th><th>Dire</th><th>kills</th><th>length</th><th>won</th><th /></tr></thead>
        <tbody>{recorded.map((r) => <tr key={r.game}><td>{dateTime(r.at)}</td><td>{r.players[0]}</td><td>{r.players[1]}</td><td>{r.kills.join(" : ")}</td>
          <td>{clock(r.seconds)}</td><td>{WINNERS[r.winner] ?? ""}</td><td><Again game={r.game} /></td></tr>)}</tbody></table>
      <p class="quiet small">The server keeps the newest. A saved file is opened on the page Games.</p></>}</section>;
}

/** Form for a new game: side, heroes, partners and opponents. */
function Open({ offer }: { offer: Offer }) {
  // The URL may name the heroes: a finished draft links here.
  const wished = ["radiant", "dire"].map((name) => (query.peek().get(name) ?? "").split(",").filter((hero) => offer.heroes.includes(hero)));
  const given = wished.every((heroes) => heroes.length === offer.heroes_per_team);
  const team = useSignal(query.peek().get("side") === "D" ? 1 : 0), places = useSignal<readonly number[]>([0]), drawn = useSignal(!given), wrong = useSignal(""), opening = useSignal(false);
  const lineup = useSignal<readonly (readonly string[])[]>(given ? wished : [0, 1].map(() => offer.heroes.slice(0, offer.heroes_per_team)));
  const partner = useSignal("agent"), rival = useSignal(offer.versions.length ? "newest" : offer.bots[0] ?? "newest"), seed = useSignal("");
  const open = async (event: Event): Promise<void> => {
    event.preventDefault();
    opening.value = true;
    wrong.value = "";
    try {
      const made = await post<{ game: string }>("play/games", { team: team.value, heroes: [...places.value].sort((a, b) => a - b), lineup: drawn.value ? null : lineup.value,
        with: partner.value, against: rival.value, seed: seed.value.trim() ? Number(seed.value) : null });
      go(`/play/${made.game}`);
    } catch (error) {
      wrong.value = errorText(error);
    } finally {
      opening.value = false;
    }
  };
  const choose = (side: number, place: number, hero: string): void => {
    lineup.value = lineup.value.map((names, t) => t === side ? names.map((name, k) => k === place ? hero : name) : names);
  };
  const take = (place: number, taken: boolean): void => {
    const next = taken ? [...places.value, place] : places.value.filter((k) => k !== place);
    if (next.length) places.value = next;
  };
  const opponents = <>{offer.versions.length > 0 && <option value="newest">the newest version</option>}
    {offer.versions.map((v) => <option key={v} value={String(v)}>version {v}</option>)}{offer.bots.map((b) => <option key={b} value={b}>{b}</option>)}</>;
  return <form class="card open-game" onSubmit={(event) => void open(event)} aria-label="A new game">
    <h2>A new game</h2>
    <p class="quiet">{offer.mode}{offer.patch ? `, patch ${offer.patch}` : ""}, at real speed. People's games do not train the agent.</p>
    <div class="row"><label>Side <select value={String(team.value)} onChange={(event) => { team.value = Number(event.currentTarget.value); }}>
        {TEAMS.map((name, k) => <option key={name} value={String(k)}>{name}</option>)}</select></label>
      <label>With <select value={partner.value} onChange={(event) => { partner.value = event.currentTarget.value; }}><option value="agent">the agent</option>{offer.bots.map((b) => <option key={b} value={b}>{b}</option>)}</select></label>
      <label>Against <select value={rival.value} onChange={(event) => { rival.value = event.currentTarget.value; }}>{opponents}</select></label>
      <label>Seed <input inputMode="numeric" pattern="[0-9]*" size={8} value={seed.value} onInput={(event) => { seed.value = event.currentTarget.value; }} /></label></div>
    <fieldset><legend>Line-ups</legend>
      <label><input type="checkbox" checked={drawn.value} onChange={(event) => { drawn.value = event.currentTarget.checked; }} /> drawn from the pool</label>
      <div class="lineups">{TEAMS.map((name, side) => <div key={name} class={`team-${side ? "D" : "R"} side-of`}><h3>{name}</h3>
        {Array.from({ length: offer.heroes_per_team }, (_, place) => <div key={place} class="row tight">
          {!drawn.value ? <select aria-label={`${name}, hero ${place + 1}`} value={lineup.value[side]?.[place] ?? ""} onChange={(event) => choose(side, place, event.currentTarget.value)}>
            {offer.heroes.map((hero) => <option key={hero} value={hero}>{plain(hero)}</option>)}</select> : <span>hero {place + 1}</span>}
          {side === team.value && <label><input type="checkbox" checked={places.value.includes(place)} onChange={(event) => take(place, event.currentTarget.checked)} /> mine</label>}
        </div>)}</div>)}</div></fieldset>
    {wrong.value && <p class="bad pre" role="alert">{wrong.value}</p>}
    <p class="buttons"><button type="submit" class="primary" disabled={opening.value || !isOperator.value}>{opening.value ? "Opening…" : "Play"}</button>
      {!isOperator.value && <span class="quiet">A viewer watches; playing takes the role operator.</span>}</p>
  </form>;
}

/** Lobby: opens games and lists those in progress. */
export function Lobby() {
  const offer = useSignal<Offer | null>(null), games = useSignal<readonly Listed[]>([]), ratings = useSignal<readonly Rated[]>([]), wrong = useSignal("");
  const recorded = useSignal<readonly Recorded[]>([]);
  useEffect(() => {
    let ended = false, timer = 0;
    const look = async (): Promise<void> => {
      if (!document.hidden)
        try {
          offer.value = await get<Offer>("play");
          if (!offer.value.server) games.value = [];
          else {
            games.value = (await get<{ games: Listed[] }>("play/games")).games;
            ratings.value = (await get<{ ratings: Rated[] }>("play/ratings")).ratings;
            recorded.value = (await get<{ recordings: Recorded[] }>("play/recordings")).recordings;
          }
          wrong.value = "";
        } catch (error) {
          wrong.value = error instanceof Problem ? error.message : String(error);
        }
      if (!ended) timer = window.setTimeout(() => void look(), LOOK_MS);
    };
    void look();
    return () => { ended = true; clearTimeout(timer); };
  }, []);
  const found = offer.value;
  return <>
    <h1>Play</h1>
    {wrong.value && <p class="bad pre" role="alert">{wrong.value}</p>}
    {!found ? !wrong.value && <p class="quiet">Asking what can be played…</p> : <>
      {!found.server || found.why ? <p class="card" role="status">{found.why || "No server for games with people is up: services.play in the configuration."}</p> : <Open offer={found} />}
      <Going games={games.value} ratings={ratings.value} delay={found.spectator_delay_seconds} />
      {found.server && <Over recorded={recorded.value} />}
    </>}
  </>;
}
