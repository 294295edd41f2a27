import { plain } from "../../games/reading.ts";
import { aiming } from "../aiming.ts";
import type { AbilityNow, HeroNow } from "../facts.ts";
import { abilityKeys, atRank, mayLearn } from "../facts.ts";
import type { Session } from "../session.ts";

/** Returns the state of the newest order of an ability or item: "sent", "taken", "refused" or "". */
export function progress(session: Session, kinds: readonly string[], slot: number): string {
  return [...session.game.traces()].reverse().find((p) => kinds.includes(p.order.kind) && p.order.slot === slot)?.state ?? "";
}

/** Returns an ability's name without its hero's: "sniper_shrapnel" is "shrapnel". */
export function called(ability: AbilityNow, hero: HeroNow): string {
  const own = `${hero.type.replace(/^npc_dota_hero_/, "")}_`;
  return plain(ability.name.startsWith(own) ? ability.name.slice(own.length) : ability.name);
}

/** Returns an ability's details, for the tooltip and screen readers. */
function says(ability: AbilityNow, wait: number): string {
  const f = ability.facts, one = (name: string, values: readonly number[] | undefined, unit = ""): string => {
    const v = atRank(values ?? [], ability.level);
    return v ? `, ${name} ${v}${unit}` : "";
  };
  const kind = f?.passive ? ", passive" : f?.toggle ? ", on or off" : f?.autocast ? ", autocast with Alt" : "";
  return `rank ${ability.level} of ${f?.ranks ?? "?"}${kind}${one("mana", f?.mana)}${one("range", f?.range)}${one("radius", f?.area)}` +
    `${one("cooldown", f?.cooldown, " s")}${wait > 0 ? `, ready in ${Math.ceil(wait)} s` : ""}`;
}

function Ability({ session, hero, ability, letter, time }: { session: Session; hero: HeroNow; ability: AbilityNow; letter: string; time: number }) {
  const f = ability.facts, wait = ability.ready ? Math.max(ability.ready - time, 0) : 0, whole = atRank(f?.cooldown ?? [], ability.level);
  const mana = atRank(f?.mana ?? [], ability.level), poor = mana > hero.mana && ability.level > 0;
  const aimed = aiming.value?.kind === "cast" && aiming.value.slot === ability.slot;
  const learn = mayLearn(ability, hero);
  const name = called(ability, hero), more = says(ability, wait);
  return <div class="ability-place">
    <button type="button" class={`ability ${poor ? "poor" : ""} ${f?.passive ? "passive" : ""} ${ability.level ? "" : "unlearned"} ${progress(session, ["cast", "toggle"], ability.slot)}`}
      aria-pressed={aimed} title={`${name}, ${more}`} data-slot={ability.slot}
      onClick={(event) => session.pressed(event, () => session.cast(ability, event.shiftKey, event.timeStamp))}
      onContextMenu={(event) => { event.preventDefault(); session.give({ kind: "toggle", slot: ability.slot }, event.timeStamp); }}>
      <kbd>{letter.toUpperCase()}</kbd> <span class="name">{name}</span>
      {wait > 0 && <><progress class="cooling" max={whole || wait} value={wait} aria-hidden="true" /><span class="wait">{wait < 1 ? wait.toFixed(1) : Math.ceil(wait)}</span></>}
      {mana > 0 && <span class="mana">{mana}</span>}
      {ability.charges > 0 && <span class="charges">{ability.charges}</span>}
      <span class="sr">, {more}</span>
    </button>
    <span class="pips" aria-hidden="true">{Array.from({ length: f?.ranks ?? 0 }, (_, k) => <i key={k} class={k < ability.level ? "lit" : ""} />)}</span>
    {learn && <button type="button" class="learn" aria-label={`+ learn ${name}`} onClick={(event) => session.pressed(event, () => session.learn(ability, event.timeStamp))}>+</button>}
  </div>;
}

/** The hero's abilities. */
export function Abilities({ session, hero, time }: { session: Session; hero: HeroNow; time: number }) {
  const keys = new Map([...abilityKeys(hero.abilities)].map(([key, slot]) => [slot, key]));
  return <div class="abilities" role="group" aria-label="Abilities">
    {session.learning.value && <p class="learning" role="status">Learn: press an ability. Escape cancels.</p>}
    {hero.abilities.map((ability) => <Ability key={ability.slot} session={session} hero={hero} ability={ability} letter={keys.get(ability.slot) ?? ""} time={time} />)}
  </div>;
}

/** Talents in pairs: which are taken, and which can be. */
export function Talents({ session, hero }: { session: Session; hero: HeroNow }) {
  const talents = session.game.facts.heroes[hero.type]?.talents ?? [];
  const pairs = [3, 2, 1, 0].filter((k) => talents.length > 2 * k + 1);
  if (!pairs.length) return <p class="quiet">Nothing is known of this hero's talents.</p>;
  return <table class="talents"><caption class="sr">Talents</caption><tbody>{pairs.map((k) => {
    const taken = hero.talents >> 2 * k & 3, open = !taken && hero.level >= talents[2 * k]![0] && hero.points > 0;
    const one = (slot: number) => <td><button type="button" aria-disabled={!open} aria-pressed={(hero.talents >> slot & 1) === 1}
      onClick={(event) => session.pressed(event, () => { if (open) session.give({ kind: "talent", slot }, event.timeStamp); })}>{talents[slot]![2]}</button></td>;
    return <tr key={k}>{one(2 * k)}<th scope="row">{talents[2 * k]![0]}</th>{one(2 * k + 1)}</tr>;
  })}</tbody></table>;
}
