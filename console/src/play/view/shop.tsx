import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { clock, moment, plain, tableOf, value } from "../../games/reading.ts";
import type { HeroNow, ItemFacts } from "../facts.ts";
import { BACKPACK, INVENTORY, SCROLL } from "../facts.ts";
import type { Session } from "../session.ts";

/** Returns how many of an item the team's shop has and when it gets another (0: it is full); null if unlimited. */
function inStock(session: Session, name: string): { left: number; next: number } | null {
  const { steps } = session.game, frame = steps?.last?.frame, schema = steps?.header.schema;
  const item = steps ? (steps.header.names.item?.indexOf(name) ?? -1) + 1 : 0;
  if (!schema || !frame || !item) return null;
  for (let row = 0; row < (tableOf(schema, "stock")?.rows ?? 0); row++)
    if (value(schema, frame, "stock", row, "item") === item)
      return { left: value(schema, frame, "stock", row, "left"), next: moment(value(schema, frame, "stock", row, "next")) };
  return null;
}

function Offer({ session, hero, name, item }: { session: Session; hero: HeroNow; name: string; item: ItemFacts }) {
  const stock = inStock(session, name), poor = item.cost > hero.gold;
  const parts = item.parts.length ? `: ${[...item.parts.map(plain), item.recipe ? `recipe ${item.recipe}` : ""].filter(Boolean).join(", ")}` : "";
  const state = [...session.game.traces()].reverse().find((p) => p.order.kind === "buy" && p.order.item === name)?.state ?? "";
  return <li><button type="button" class={`offer ${poor ? "poor" : ""} ${state}`} title={`${plain(name)}${parts}`}
    onClick={(event) => session.give({ kind: "buy", item: name }, event.timeStamp)}>
    <span class="name"><span class="sr">Buy </span>{plain(name)}<span class="sr"> for</span></span> <b>{item.cost}<span class="sr"> gold</span></b>
    {stock && <span class={stock.left ? "quiet" : "bad"}>{stock.left ? `${stock.left} left` : `out of stock until ${clock(stock.next)}`}</span>}
    {!item.shops.includes("home") && <span class="quiet">{item.shops.join(", ")} shop</span>}
  </button></li>;
}

function Own({ session, hero }: { session: Session; hero: HeroNow }) {
  const called = (slot: number): string => slot === SCROLL ? "scroll" : slot < INVENTORY ? `item ${slot + 1}` : slot < INVENTORY + BACKPACK ? `backpack ${slot - INVENTORY + 1}` : `stash ${slot - INVENTORY - BACKPACK + 1}`;
  const held = hero.items.filter((item) => item.name);
  if (!held.length) return <p class="quiet">The hero carries nothing.</p>;
  return <ul class="own">{held.map((item) => <li key={item.slot}><span class="name">{plain(item.name)}</span>
    <button type="button" aria-label={`Sell ${plain(item.name)}`} onClick={(event) => session.give({ kind: "sell", slot: item.slot }, event.timeStamp)}>Sell</button>
    <button type="button" aria-label={`Drop ${plain(item.name)}`} onClick={() => { session.drop(item); session.focus(); }}>Drop</button>
    <select aria-label={`Move ${plain(item.name)} to`} value="" onChange={(event) => {
      const to = Number(event.currentTarget.value);
      event.currentTarget.value = "";
      session.give({ kind: "swap", slot: item.slot, to }, event.timeStamp);
    }}><option value="">{called(item.slot)}</option>{hero.items.filter((other) => other.slot !== item.slot && other.slot !== SCROLL).map((other) =>
      <option key={other.slot} value={String(other.slot)}>to {called(other.slot)}</option>)}</select></li>)}</ul>;
}

/** Shop: recommended items, all items, the hero's items. The search field gets the focus. */
export function Shop({ session, hero }: { session: Session; hero: HeroNow }) {
  const search = useSignal(""), field = useRef<HTMLInputElement>(null);
  useEffect(() => { field.current?.focus(); }, []);
  const { items, heroes } = session.game.facts, build = heroes[hero.type];
  const wanted = search.value.trim().toLowerCase();
  const list = (names: readonly string[]) => <ul class="offers">{names.filter((name) => items[name] && (!wanted || plain(name).includes(wanted)))
    .map((name, k) => <Offer key={`${name}${k}`} session={session} hero={hero} name={name} item={items[name]!} />)}</ul>;
  return <section class="panel shop" aria-label="Shop" tabIndex={0}>
    <header class="row"><h2>Shop</h2><b>{hero.gold} gold</b>
      <label>Search <input ref={field} type="search" value={search.value} onInput={(event) => { search.value = event.currentTarget.value; }} /></label>
      <button type="button" onClick={() => session.close()}>Close</button></header>
    {session.game.notice.value && <p role="status" class="warn">{session.game.notice.value}</p>}
    <div class="shelves">
      {!wanted && build && <div><h3>Recommended to begin with</h3>{list(build.start)}<h3>Recommended later</h3>{list(build.build)}</div>}
      <div><h3>All items</h3>{list(Object.keys(items).sort((a, b) => items[a]!.cost - items[b]!.cost || a.localeCompare(b)))}</div>
      {!wanted && <div><h3>What the hero has</h3><Own session={session} hero={hero} /></div>}
    </div>
  </section>;
}
