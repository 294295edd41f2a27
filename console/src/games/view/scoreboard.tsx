import type { Header } from "../decode/stream.ts";
import type { Frame } from "../decode/schema.ts";
import { gameTime, moment, plain, tableOf, value } from "../reading.ts";

const ITEMS = 9; // inventory and backpack

/** Returns the name of a hero by its number, 0 to 9; "" if the frame has no unit of it. */
export function heroName(header: Header, frame: Frame, hero: number): string {
  const unit = value(header.schema, frame, "hero", hero, "unit");
  return unit ? plain(header.names.unit?.[value(header.schema, frame, "unit", unit - 1, "type") - 1] ?? "") : "";
}

/** Both teams' heroes: level, kills, gold, items. A row chooses its hero. */
export function Scoreboard({ header, frame, chosen, choose }: { header: Header; frame: Frame; chosen: number; choose: (hero: number) => void }) {
  const of = (hero: number, field: string): number => value(header.schema, frame, "hero", hero, field);
  const now = gameTime(header.schema, frame), slots = Math.floor((tableOf(header.schema, "item")?.rows ?? 0) / 10);
  const items = (hero: number): string[] => Array.from({ length: Math.min(ITEMS, slots) }, (_, k) =>
    value(header.schema, frame, "item", hero * slots + k, "id")).filter((id) => id > 0).map((id) => plain(header.names.item?.[id - 1] ?? ""));
  return <table class="scores">
    <caption class="sr">Heroes</caption>
    <thead><tr><th scope="col">Hero</th><th scope="col">Lvl</th><th scope="col" title="kills, deaths, assists">K/D/A</th>
      <th scope="col" title="last hits, denies">LH/DN</th><th scope="col">Gold</th><th scope="col">Net worth</th><th scope="col">Items</th></tr></thead>
    {[0, 1].map((team) => <tbody key={team} class={team ? "dire" : "radiant"}>
      {[0, 1, 2, 3, 4].map((k) => team * 5 + k).filter((h) => of(h, "unit") || of(h, "level")).map((h) => {
        const alive = value(header.schema, frame, "unit", of(h, "unit") - 1, "look") & 1 << 6;
        const respawn = !alive && of(h, "respawn") ? Math.max(moment(of(h, "respawn")) - now, 0) : 0;
        return <tr key={h} aria-selected={h === chosen}>
          <th scope="row"><button type="button" class="pick" aria-pressed={h === chosen} onClick={() => choose(h)}>{heroName(header, frame, h) || `hero ${h + 1}`}</button>
            {respawn > 0 && <span class="dead"> {Math.ceil(respawn)} s</span>}</th>
          <td>{of(h, "level")}</td><td>{of(h, "kills")}/{of(h, "deaths")}/{of(h, "assists")}</td>
          <td>{of(h, "last_hits")}/{of(h, "denies")}</td><td>{of(h, "gold")}</td><td>{of(h, "net_worth")}</td>
          <td class="items">{items(h).map((item, k) => <span key={k} class="item" title={item}>{item}</span>)}</td>
        </tr>;
      })}
    </tbody>)}
  </table>;
}
