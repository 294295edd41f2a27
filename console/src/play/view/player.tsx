import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Signal } from "@preact/signals";
import { useSignal } from "@preact/signals";
import { who } from "../../api/session";
import { gameTime, plain } from "../../games/reading.ts";
import { eventText } from "../../games/view/course.tsx";
import { Scoreboard, heroName } from "../../games/view/scoreboard.tsx";
import { rating } from "../../text";
import { aiming } from "../aiming.ts";
import { heroNow } from "../facts.ts";
import { Game } from "../game.ts";
import { press } from "../keyboard.ts";
import { HELP } from "../keys.ts";
import { Session } from "../session.ts";
import { Talents } from "./abilities.tsx";
import { Again } from "./again.tsx";
import { Field } from "./field.tsx";
import { Hud, Top } from "./hud.tsx";
import { Shop } from "./shop.tsx";

const LINES = 6, LINE_SECONDS = 15;
const WINNERS: readonly string[] = ["The game ended without a winner.", "Radiant won.", "Dire won.", "It is a draw."];
const ENDINGS: Readonly<Record<string, string>> = { closed: "It was closed.", abandoned: "Nobody was left in it.", drained: "Its server was stopped.", lost: "The agents were lost." };

const ms = (v: number): string => Number.isFinite(v) ? `${Math.round(v)} ms` : "–";

function Delay({ session, now }: { session: Session; now: Signal<number> }) {
  void now.value;
  const { game } = session, { answered, shown } = game, state = game.state.value;
  return <p class="delay small quiet" title="From the key to the first picture of the frame in which the order took effect: of the last hundred orders the middle one, and what one in a hundred exceeds; in brackets: to the answer.">
    delay p50 {ms(shown.quantile(0.5))} ({ms(answered.quantile(0.5))}), p99 {ms(shown.quantile(0.99))} ({ms(answered.quantile(0.99))})
    {state && state.late > 0 && `; ${state.late} answers of agents late`}{state?.version !== null && state?.version !== undefined && state.version >= 0 && `; against version ${state.version}`}</p>;
}

/** A game in progress for a player or spectator: the map and all controls. `leave` returns to the lobby. */
export function Player({ name, address, spectate, leave }: { name: string; address: string; spectate: boolean; leave: () => void }) {
  const session = useMemo(() => new Session(new Game(address), spectate), [address]);
  const now = useSignal(0), root = useRef<HTMLElement>(null), { game } = session;
  useEffect(() => {
    const warn = (event: BeforeUnloadEvent): void => { if (!spectate && game.link.peek() === "live") event.preventDefault(); };
    addEventListener("beforeunload", warn);
    return () => { removeEventListener("beforeunload", warn); game.close(); aiming.value = null; };
  }, [session]);
  const state = game.state.value, header = game.header.value, mine = state?.seats.filter((s) => s.who === who.value?.name).map((s) => s.hero) ?? [];
  if (!spectate) session.seats(mine.length ? mine : header && header.hero >= 0 ? [header.hero] : []);
  void now.value; void game.orders.value;
  const frame = game.steps?.last?.frame ?? session.sample?.from.frame, hero = session.hero.value;
  const key = (event: KeyboardEvent): void => {
    const target = event.target as HTMLElement, onField = target.matches("[data-field]");
    if (event.key === "Escape") {
      event.preventDefault();
      if (!session.cancel() && onField) root.current?.querySelector<HTMLElement>(".purse button")?.focus();
      else if (!onField) session.focus();
      return;
    }
    if (target instanceof HTMLInputElement || target instanceof HTMLSelectElement) return;
    if (press(session, event, onField)) { event.preventDefault(); event.stopPropagation(); }
  };
  const release = (event: KeyboardEvent): void => { if (event.key === "Tab" && session.panel.peek() === "scores") session.panel.value = ""; };
  const fullScreen = async (): Promise<void> => {
    if (document.fullscreenElement) { await document.exitFullscreen(); return; }
    await root.current?.requestFullscreen();
    // Ctrl+W would close the page. Browsers with keyboard lock give it to the game in full screen.
    await (navigator as unknown as { keyboard?: { lock?: (keys: string[]) => Promise<void> } }).keyboard?.lock?.(["KeyW", "KeyQ", "KeyE", "KeyR", "KeyD", "KeyF"]).catch(() => undefined);
    session.focus();
  };
  const end = game.end.value, time = header && frame ? gameTime(header.schema, frame) : 0;
  const own = header && frame && hero >= 0 ? heroNow(header, game.facts, frame, hero) : null;
  const feed = game.events.value.filter((e) => e.event.kind !== "item" && time - e.time < LINE_SECONDS).slice(-LINES);
  // A dead enemy has no visible unit: its name comes from the seats.
  const named = (place: number): string => (header && frame && heroName(header, frame, place)) || plain(state?.seats.find((s) => s.hero === place)?.name ?? "");
  const panel = session.panel.value;
  return <section ref={root} class="play" aria-label="Game" onKeyDown={key} onKeyUp={release}>
    {header && frame ? <Top session={session} header={header} frame={frame} seats={state?.seats ?? []} /> : <p class="quiet">Waiting for the game…</p>}
    <div class="ground">
      <Field session={session} now={now} />
      <div class="notices">
        {game.link.value === "lost" && <p class="bad" role="alert">Connection lost{spectate ? "" : "; the agent has your hero"}. Trying again…</p>}
        {game.link.value === "elsewhere" && <div class="ended card" role="alert"><p>You play this game in another window.</p>
          <button type="button" class="primary" onClick={() => { game.again(); session.focus(); }}>Play here</button></div>}
        {game.link.value === "ended" && !end && <p class="bad" role="alert">This game is over, does not exist, or cannot be joined.</p>}
        {state && !state.running && !end && <p class="warn" role="status">The game is paused.</p>}
        {game.notice.value && panel !== "shop" && <p class="warn" role="status">{game.notice.value}</p>}
        {end && <div class="ended card" role="status"><h2>{WINNERS[end.winner ?? 0] ?? "The game is over."}</h2>
          {end.reason && <p>{ENDINGS[end.reason] ?? end.reason}</p>}
          {end.rating && <p>Your rating among people: {rating(end.rating.mu, end.rating.sigma)}</p>}
          {end.recorded && <p><Again game={name} /></p>}
          <button type="button" class="primary" onClick={leave}>Another game</button></div>}
      </div>
      <ol class="kills" aria-label="What happened">{header && frame && feed.map((e, k) => <li key={`${e.time}${k}`}>{eventText(e.event, named)}</li>)}</ol>
      {panel === "scores" && header && frame && <section class="panel" aria-label="Scoreboard" tabIndex={0}><Scoreboard header={header} frame={frame} chosen={hero} choose={() => undefined} /></section>}
      {panel === "shop" && own && <Shop session={session} hero={own} />}
      {panel === "talents" && own && <section class="panel" aria-label="Talents" tabIndex={0}><Talents session={session} hero={own} /></section>}
      {panel === "help" && <section class="panel" aria-label="Keys" tabIndex={0}><dl class="keys">{HELP.map(([keys, does]) => <div key={keys}><dt>{keys}</dt><dd>{does}</dd></div>)}</dl></section>}
    </div>
    {own && !spectate && <Hud session={session} hero={own} time={time} seat={state?.seats.find((s) => s.hero === hero)} />}
    <footer class="under">
      <Delay session={session} now={now} /><span class="spring" />
      <label><input type="checkbox" checked={session.quick.value} onChange={(event) => { session.quick.value = event.currentTarget.checked; session.focus(); }} /> Cast at once, at the cursor</label>
      <button type="button" aria-pressed={panel === "scores"} onClick={() => { session.panel.value = panel === "scores" ? "" : "scores"; }}>Scoreboard</button>
      <button type="button" aria-pressed={panel === "help"} onClick={() => { session.panel.value = panel === "help" ? "" : "help"; }}>Keys</button>
      <button type="button" onClick={() => void fullScreen()}>Full screen</button>
      <button type="button" class="danger" onClick={() => { game.leave(); leave(); }}>Leave the game</button>
    </footer>
  </section>;
}
