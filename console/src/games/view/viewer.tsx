import { useEffect, useMemo, useRef } from "preact/hooks";
import { useSignal, useSignalEffect } from "@preact/signals";
import { note, query } from "../../shell/route";
import { Film } from "../film.ts";
import { Playback, SPEEDS } from "../playback.ts";
import { clock, gameTime, netWorth, radiantWins, value } from "../reading.ts";
import { Board } from "./board.tsx";
import { Course, Feed, Swings } from "./course.tsx";
import type { FogOf, Showing } from "./scene.ts";
import { Scoreboard, heroName } from "./scoreboard.tsx";
import { Thoughts } from "./thoughts.tsx";

const EARLIER_STEPS = 75; // ten seconds

/** Viewer of a game: the map, and in step with it scores, events and policy outputs.
 *
 * `data` is a recording in memory; with `still` playback begins paused.
 */
export function Viewer({ address, live, title, data, still = false }: { address: string; live: boolean; title: string; data?: Uint8Array<ArrayBuffer>; still?: boolean }) {
  const film = useMemo(() => new Film(), [address]);
  const playback = useMemo(() => new Playback(film, live), [film]);
  const showing = useSignal<Showing>({ fog: "none", hero: 0, names: true }), now = useSignal(0), items = useSignal(false);
  useEffect(() => {
    if (still) playback.playing.value = false;
    void (data ? film.readBytes(data) : film.read(address, live));
    return () => film.close();
  }, [film]);
  // The URL holds the position of a recording, ?t= in seconds since the horn, after a pause or a seek, for sharing.
  const linked = !live && !data, sought = useRef(false);
  useSignalEffect(() => {
    const asked = query.peek().get("t");
    if (!linked || sought.current || !film.track.value.length || asked === null || !Number.isFinite(Number(asked))) return;
    sought.current = true;
    playback.playing.value = false;
    playback.seek(film.stepAt(Number(asked)));
  });
  const tell = (): void => {
    const there = linked && film.at(Math.floor(playback.position.peek()))?.frame, known = film.header.peek();
    if (there && known) note({ t: gameTime(known.schema, there).toFixed(1) });
  };
  const header = film.header.value, problem = film.problem.value;
  if (problem && !film.steps.value) return <p role="alert" class="problem">{problem}</p>;
  if (!header || !film.steps.value) return <p class="quiet">{live ? "Waiting for the game…" : "Loading the recording…"}</p>;
  const frame = film.at(now.value)?.frame, earlier = film.at(Math.max(now.value - EARLIER_STEPS, 0))?.frame;
  const time = frame ? gameTime(header.schema, frame) : 0;
  const choose = (hero: number): void => { showing.value = { ...showing.value, hero }; };
  const go = (at: number): void => { playback.seek(film.stepAt(at)); if (linked) note({ t: at.toFixed(1) }); };
  const jump = (by: number): void => playback.seek(playback.position.peek() + by * header.steps_per_second);
  const turn = (): void => { playback.playing.value = !playback.playing.value; if (!playback.playing.value) tell(); };
  const key = (event: KeyboardEvent): void => {
    if (event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement || event.target instanceof HTMLButtonElement) return;
    const does: Record<string, () => void> = {
      " ": turn, ArrowLeft: () => jump(-5), ArrowRight: () => jump(5), Home: () => playback.seek(0),
      End: () => playback.toEdge(),
    };
    if (!does[event.key]) return;
    event.preventDefault();
    does[event.key]!();
  };
  const wins = frame ? radiantWins(header.schema, frame) : null;
  const players = Array.isArray(header.about.players) ? header.about.players.map(String) : [];
  const count = (field: string): number => frame ? value(header.schema, frame, "clock", 0, field) : 0;
  return <section class="viewer" onKeyDown={key} aria-label={title}>
    {problem && <p role="alert" class="problem">{problem}</p>}
    <div class="stage">
      <header class="standing">
        <span class="side radiant"><b>Radiant</b> {players[0] ?? ""}</span>
        <span class="score">{count("radiant_kills")} : {count("dire_kills")}</span>
        <span class="side dire"><b>Dire</b> {players[1] ?? ""}</span>
        <span class="clock" aria-label="game time">{clock(time)} {count("day") ? "day" : "night"}</span>
        {frame && <span>net worth {netWorth(header.schema, frame, 0)} : {netWorth(header.schema, frame, 1)}</span>}
        {wins !== null && <span class="wins">Radiant wins {Math.round(100 * wins)}%, Dire {100 - Math.round(100 * wins)}%</span>}
      </header>
      <Board film={film} playback={playback} showing={showing} choose={choose} now={now} />
      <div class="controls">
        <button type="button" onClick={() => jump(-15)} aria-label="−15 s: back">−15 s</button>
        <button type="button" class="play" aria-pressed={playback.playing.value} onClick={turn}>
          {playback.playing.value ? "Pause" : "Play"}</button>
        <button type="button" onClick={() => jump(15)} aria-label="+15 s: on">+15 s</button>
        <input type="range" class="scrub" aria-label="Where in the game" min={0} max={Math.max(film.steps.value - 1, 1)} step={1} value={now.value}
          aria-valuetext={clock(time)} onInput={(event) => playback.seek(Number(event.currentTarget.value))} />
        <label>Speed <select value={String(playback.speed.value)} onChange={(event) => {
          playback.speed.value = Number(event.currentTarget.value);
          if (playback.speed.value !== 1) playback.atEdge.value = false;
        }}>{SPEEDS.map((s) => <option key={s} value={String(s)}>{s === 0.25 ? "¼" : s === 0.5 ? "½" : s}×</option>)}</select></label>
        {live && !film.over.value && <button type="button" class="edge" aria-pressed={playback.atEdge.value} onClick={() => playback.toEdge()}>Live</button>}
        {live && film.over.value && <span class="quiet">The game is over.</span>}
        <label>Fog of <select value={showing.value.fog} onChange={(event) => { showing.value = { ...showing.value, fog: event.currentTarget.value as FogOf }; }}>
          <option value="none">nobody</option><option value="radiant">Radiant</option><option value="dire">Dire</option></select></label>
        <label><input type="checkbox" checked={showing.value.names} onChange={(event) => { showing.value = { ...showing.value, names: event.currentTarget.checked }; }} /> Names</label>
      </div>
      <Course track={film.track.value} time={time} go={go} />
    </div>
    <aside class="beside">
      {frame && <Scoreboard header={header} frame={frame} chosen={showing.value.hero} choose={choose} />}
      <h3>What happened <label class="small"><input type="checkbox" checked={items.value} onChange={(event) => { items.value = event.currentTarget.checked; }} /> items</label></h3>
      <Feed events={film.events.value} time={time} items={items.value} go={go} hero={(place) => frame ? heroName(header, frame, place) : ""} />
      <Swings track={film.track.value} go={go} />
      {frame && <Thoughts header={header} frame={frame} earlier={earlier} hero={showing.value.hero} />}
    </aside>
  </section>;
}
