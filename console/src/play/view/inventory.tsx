import { plain } from "../../games/reading.ts";
import { aiming } from "../aiming.ts";
import type { HeroNow, ItemNow } from "../facts.ts";
import { BACKPACK, INVENTORY, SCROLL, STASH, atRank } from "../facts.ts";
import { ITEM_KEYS } from "../keys.ts";
import type { Session } from "../session.ts";
import { progress } from "./abilities.tsx";

function Item({ session, hero, item, letter, time }: { session: Session; hero: HeroNow; item: ItemNow; letter: string; time: number }) {
  const wait = item.ready ? Math.max(item.ready - time, 0) : 0, mana = atRank(item.facts?.mana ?? [], 1);
  const aimed = aiming.value?.kind === "use" && aiming.value.slot === item.slot;
  const where = item.slot < INVENTORY || item.slot === SCROLL ? "" : item.slot < INVENTORY + BACKPACK ? "in the backpack" : "in the stash";
  const said = item.name ? [where, mana ? `mana ${mana}` : "", item.charges ? `${item.charges} charges` : "", wait ? `ready in ${Math.ceil(wait)} s` : ""].filter(Boolean).join(", ")
    : `empty ${where}`.trim();
  const name = plain(item.name);
  return <button type="button" class={`slot ${item.name ? "" : "empty"} ${mana > hero.mana ? "poor" : ""} ${progress(session, ["use"], item.slot)}`} aria-pressed={aimed}
    title={name ? `${name}, ${said}` : said} draggable={item.name !== ""}
    onDragStart={(event) => event.dataTransfer?.setData("text/plain", String(item.slot))} onDragOver={(event) => event.preventDefault()}
    onDrop={(event) => {
      event.preventDefault();
      const from = Number(event.dataTransfer?.getData("text/plain"));
      if (Number.isInteger(from) && from !== item.slot) session.give({ kind: "swap", slot: from, to: item.slot }, event.timeStamp);
    }}
    onClick={(event) => session.pressed(event, () => { if (item.name && !where) session.use(item, event.shiftKey, event.timeStamp); })}>
    {letter && <kbd>{letter.toUpperCase()}</kbd>} <span class="name">{name}</span>
    {wait > 0 && <span class="wait">{wait < 1 ? wait.toFixed(1) : Math.ceil(wait)}</span>}
    {item.charges > 0 && <span class="charges">{item.charges}</span>}
    <span class="sr">, {said}</span>
  </button>;
}

/** The hero's items: six and the scroll with their keys, backpack and stash. Dragging swaps two slots. */
export function Inventory({ session, hero, time }: { session: Session; hero: HeroNow; time: number }) {
  const row = (from: number, count: number, keys: readonly string[]) => hero.items.slice(from, from + count).map((item, k) =>
    <Item key={item.slot} session={session} hero={hero} item={item} letter={keys[k] ?? ""} time={time} />);
  const scroll = hero.items[SCROLL];
  return <div class="inventory">
    <div>
      <div class="slots" role="group" aria-label="Items">{row(0, INVENTORY, ITEM_KEYS)}</div>
      {scroll && <div class="slots" role="group" aria-label="Teleport scroll">{row(SCROLL, 1, ["t"])}</div>}
    </div>
    <div>
      <div class="slots small-slots" role="group" aria-label="Backpack">{row(INVENTORY, BACKPACK, [])}</div>
      <div class="slots small-slots" role="group" aria-label="Stash">{row(INVENTORY + BACKPACK, STASH, [])}</div>
    </div>
  </div>;
}
