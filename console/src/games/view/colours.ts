// Map colours, derived from the page's theme. Teams differ in shape as well as in colour.
export interface Colours {
  readonly teams: readonly [string, string, string]; readonly text: string; readonly dim: string; readonly card: string;
  readonly edge: string; readonly dark: boolean; readonly good: string; readonly accent: string;
}

export function coloursOf(element: Element): Colours {
  const style = getComputedStyle(element);
  const named = (name: string): string => style.getPropertyValue(name).trim();
  return {
    teams: [named("--radiant"), named("--dire"), "#b79f3c"], text: named("--text"), dim: named("--dim"), card: named("--card"),
    edge: named("--edge"), dark: style.colorScheme === "dark", good: named("--good"), accent: named("--accent"),
  };
}

/** Returns the ground's colour (RGB) at a level; negative levels are impassable. */
export function ground(level: number, dark: boolean): readonly [number, number, number] {
  if (level < 0) return dark ? [16, 20, 24] : [178, 184, 188];
  const low = dark ? [38, 52, 60] : [168, 192, 196], high = dark ? [84, 88, 74] : [222, 218, 196];
  const share = Math.min(Math.max(level, 0), 5) / 5;
  return [0, 1, 2].map((c) => Math.round(low[c]! + (high[c]! - low[c]!) * share)) as unknown as readonly [number, number, number];
}
