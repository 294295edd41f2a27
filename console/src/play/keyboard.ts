// Dispatch of keys to the session. Handled keys are not passed to the browser.
import { ABILITY_KEYS, ITEM_KEYS, letter } from "./keys.ts";
import { SCROLL, abilityKeys } from "./facts.ts";
import type { Session } from "./session.ts";

const STEP = 90, NUDGE = 40; // pixels
const ARROWS: Readonly<Record<string, readonly [number, number]>> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** Carries out a key's command; returns whether it has one. `onField`: the map has the focus, not a button. */
export function press(session: Session, event: KeyboardEvent, onField: boolean): boolean {
  const began = event.timeStamp, queue = event.shiftKey, arrow = ARROWS[event.key];
  if (arrow && onField) {
    const [dx, dy] = arrow;
    if (event.altKey) session.nudge(dx * NUDGE, dy * NUDGE);
    else session.camera?.drag(-dx * STEP, -dy * STEP);
    return true;
  }
  const key = letter(event), hero = session.now();
  const ability = hero && (ABILITY_KEYS as readonly string[]).includes(key) ? hero.abilities.find((a) => a.slot === abilityKeys(hero.abilities).get(key)) : undefined;
  if (ability) {
    if (event.repeat) return true;
    if (event.ctrlKey || event.metaKey || session.learning.peek()) session.learn(ability, began);
    else if (event.altKey) session.give({ kind: "toggle", slot: ability.slot }, began);
    else session.cast(ability, queue, began);
    return true;
  }
  if (event.ctrlKey || event.metaKey) return false;
  const item = hero && (key === "t" ? hero.items[SCROLL] : hero.items[(ITEM_KEYS as readonly string[]).indexOf(key)]);
  if (item && !event.altKey) {
    if (!event.repeat) session.use(item, queue, began);
    return true;
  }
  const toggle = (panel: "shop" | "scores" | "talents" | "help"): void => { session.panel.value = session.panel.peek() === panel ? "" : panel; };
  const does: Record<string, () => void> = {
    a: () => session.attack(queue, began), s: () => session.give({ kind: "stop" }, began), h: () => session.give({ kind: "hold", queue }, began),
    m: () => toggle("shop"), u: () => toggle("talents"), l: () => { session.learning.value = !session.learning.peek(); }, "?": () => toggle("help"),
    "+": () => session.zoom(1.2), "=": () => session.zoom(1.2), "-": () => session.zoom(1 / 1.2), ".": () => session.next(true), ",": () => session.next(false),
    1: () => session.lead(0), 2: () => session.lead(1), 3: () => session.lead(2), 4: () => session.lead(3), 5: () => session.lead(4),
  };
  const field: Record<string, () => void> = {
    " ": () => session.centre(), Enter: () => session.confirm(queue, began), Tab: () => { session.panel.value = "scores"; },
  };
  const found = does[key || event.key] ?? (onField && !(event.key === "Tab" && event.shiftKey) ? field[event.key] : undefined);
  if (!found || event.altKey) return false;
  if (!event.repeat || "+=-.,".includes(event.key)) found();
  return true;
}
