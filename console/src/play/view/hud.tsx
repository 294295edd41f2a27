import { clock, gameTime, plain, value } from "../../games/reading.ts";
import { heroName } from "../../games/view/scoreboard.tsx";
import type { Frame } from "../../games/decode/schema.ts";
import type { Header } from "../../games/decode/stream.ts";
import { moment } from "../../games/reading.ts";
import type { HeroNow } from "../facts.ts";
import { buybackCost, skyChanges } from "../facts.ts";
import type { Session } from "../session.ts";
import type { Seat } from "../wire.ts";
import { Abilities } from "./abilities.tsx";
import { Inventory } from "./inventory.tsx";
import { MiniMap } from "./minimap.tsx";

/** Row above the map: both teams' heroes, score, clock. */
export function Top({ session, header, frame, seats }: { session: Session; header: Header; frame: Frame; seats: readonly Seat[] }) {
  const time = gameTime(header.schema, frame), count = (field: string): number => value(header.schema, frame, "clock", 0, field);
  const of = (hero: number, field: string): number => value(header.schema, frame, "hero", hero, field);
  const changes = skyChanges(session.game.facts, time);
  const side = (team: number) => <ul class={`portraits ${team ? "dire" : "radiant"}`} aria-label={team ? "Dire" : "Radiant"}>{[0, 1, 2, 3, 4].map((k) => team * 5 + k)
    .filter((hero) => of(hero, "unit") || of(hero, "level") || seats.some((s) => s.hero === hero)).map((hero) => {
      const slot = of(hero, "unit") - 1, seat = seats.find((s) => s.hero === hero), unit = (field: string): number => slot < 0 ? 0 : value(header.schema, frame, "unit", slot, field);
      const alive = (unit("look") & 1 << 6) !== 0, back = of(hero, "respawn") ? Math.max(moment(of(hero, "respawn")) - time, 0) : 0;
      const name = heroName(header, frame, hero) || (seat ? plain(seat.name) : `hero ${hero + 1}`), who = seat?.who ? `${seat.who}${seat.held ? "" : ", away"}` : "agent";
      return <li key={hero} class={`portrait${hero === session.hero.value ? " led" : ""}${back ? " fallen" : ""}`} title={`${name}, ${who}`}>
        <span class="name">{name}</span><span class="who">{who}</span>
        {back > 0 ? <span class="back" aria-label={`back in ${Math.ceil(back)} seconds`}>{Math.ceil(back)}</span>
          : <meter min={0} max={unit("max_hp") || 1} value={unit("hp")} aria-label={`health of ${name}`} class={alive ? "" : "unseen"} />}
      </li>;
    })}</ul>;
  return <header class="top">
    {side(0)}
    <div class="clockwork"><span class="score"><b class="radiant">{count("radiant_kills")}</b> : <b class="dire">{count("dire_kills")}</b></span>
      <span class="clock" aria-label="game time">{clock(time)}</span><span class="sky">{count("day") ? "☀ day" : "☾ night"}{changes !== null && ` ${clock(changes)}`}</span></div>
    {side(1)}
  </header>;
}

function Bar({ name, value: now, most, kind }: { name: string; value: number; most: number; kind: string }) {
  return <div class={`bar-of ${kind}`}><meter min={0} max={most || 1} value={now} aria-label={name} /><span>{Math.round(now)} / {Math.round(most)}</span></div>;
}

function Portrait({ session, hero, time }: { session: Session; hero: HeroNow; time: number }) {
  const { facts } = session.game, before = facts.xp[hero.level - 1] ?? 0, next = facts.xp[hero.level];
  const back = hero.respawn ? Math.max(hero.respawn - time, 0) : 0, again = hero.buyback ? Math.max(hero.buyback - time, 0) : 0;
  return <div class="self">
    <div class="row tight"><b class="hero-name">{facts.heroes[hero.type]?.name ?? plain(hero.type)}</b> <span>level {hero.level}</span>
      {hero.points > 0 && <button type="button" class="points" aria-pressed={session.learning.value} onClick={(event) => session.pressed(event, () => { session.learning.value = !session.learning.peek(); })}>
        {hero.points} to learn</button>}
      <button type="button" onClick={(event) => session.pressed(event, () => { session.panel.value = session.panel.peek() === "talents" ? "" : "talents"; })}>Talents</button></div>
    <Bar name="health" value={hero.hp} most={hero.maxHp} kind="health" />
    <Bar name="mana" value={hero.mana} most={hero.maxMana} kind="power" />
    <div class="bar-of"><progress max={next === undefined ? 1 : next - before} value={next === undefined ? 1 : hero.xp - before} aria-label="experience" />
      <span>{next === undefined ? `${hero.xp} XP` : `${hero.xp} / ${next} XP`}</span></div>
    {back > 0 && <div class="row tight"><b class="bad" role="status">Back in {Math.ceil(back)} s</b>
      <button type="button" aria-disabled={again > 0 || hero.gold < buybackCost(facts, hero)} onClick={(event) => session.pressed(event, () => session.give({ kind: "buyback" }, event.timeStamp))}>
        Buy back{facts.buyback.length ? `: ${buybackCost(facts, hero)} gold` : ""}{again > 0 ? ` (in ${clock(again)})` : ""}</button></div>}
  </div>;
}

/** Button that aims a scan. Until the team can scan it shows the remaining time. */
function Scan({ session, time }: { session: Session; time: number }) {
  const ready = session.scanReady(), left = Math.ceil(ready - time);
  return <button type="button" aria-disabled={left > 0} title={left > 0 ? `ready in ${clock(left)}` : ""} onClick={(event) => session.pressed(event, () => session.scan())}>Scan{left > 0 ? ` ${clock(left)}` : ""}</button>;
}

function Purse({ session, hero, time, seat }: { session: Session; hero: HeroNow; time: number; seat: Seat | undefined }) {
  const give = (kind: "courier" | "glyph", item = "") => (event: MouseEvent): void => session.pressed(event, () => session.give({ kind, item }, event.timeStamp));
  const held = seat?.held ?? true;
  return <div class="purse">
    <button type="button" class="gold primary" onClick={(event) => session.pressed(event, () => { session.panel.value = session.panel.peek() === "shop" ? "" : "shop"; })}>{hero.gold} gold <kbd>M</kbd></button>
    <div class="row tight" role="group" aria-label="Courier"><button type="button" onClick={give("courier", "deliver")}>Deliver</button><button type="button" onClick={give("courier", "return")}>Courier home</button></div>
    <div class="row tight" role="group" aria-label="Team"><button type="button" onClick={give("glyph")}>Glyph</button><Scan session={session} time={time} /></div>
    <button type="button" onClick={(event) => session.pressed(event, () => session.game.hand(hero.hero, !held))}>{held ? "Give my hero to the agent" : "Take my hero back"}</button>
  </div>;
}

/** Row below the map: mini map, hero, abilities, items, gold. */
export function Hud({ session, hero, time, seat }: { session: Session; hero: HeroNow; time: number; seat: Seat | undefined }) {
  return <div class="hud">
    <MiniMap session={session} />
    <Portrait session={session} hero={hero} time={time} />
    <Abilities session={session} hero={hero} time={time} />
    <Inventory session={session} hero={hero} time={time} />
    <Purse session={session} hero={hero} time={time} seat={seat} />
  </div>;
}
