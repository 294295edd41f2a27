// Key bindings of the play page. Letters follow the keyboard layout.
export const ITEM_KEYS = ["z", "x", "c", "v", "b", "n"] as const;
export const ABILITY_KEYS = ["q", "w", "e", "r", "d", "f"] as const;

/** Keys and what they do, for the page's help. */
export const HELP: readonly (readonly [string, string])[] = [
  ["right click, Enter", "go there; attack, follow, pick up what is under the cursor"], ["A, then click", "attack, or go there and attack on the way"],
  ["S, H", "stop, hold the ground"], ["Q W E R D F", "abilities; twice: on yourself"], ["Z X C V B N, T", "items, teleport scroll"],
  ["Alt + ability", "its autocast on or off"], ["Shift", "after the orders that are still to be done"], ["Ctrl + ability, or L and then it", "learn"], ["U", "talents"],
  ["M", "shop"], ["Tab", "scoreboard"], ["space", "look at the hero"], ["1 to 5", "the hero that you lead, if you have several"],
  ["arrows, edge, drag", "move the view; + and − zoom"], ["Alt + arrows", "move the cursor without a mouse"], [". and ,", "cursor to the next enemy, the next friend"],
  ["click on the mini map", "look there; Alt + click pings, right click goes there"], ["Escape", "cancel; without anything to cancel: leave the map for the buttons"],
];

/** Returns a key's letter, "" for other keys.
 *
 * Where the character is no Latin letter, after Alt or Ctrl or on a Cyrillic or Greek keyboard, the physical key counts.
 */
export function letter(event: KeyboardEvent): string {
  if (/^[a-z]$/i.test(event.key)) return event.key.toLowerCase();
  const isChanged = event.altKey || event.ctrlKey || /[^\x00-\x7f]/.test(event.key);
  return isChanged && /^Key[A-Z]$/.test(event.code) ? event.code[3]!.toLowerCase() : "";
}
