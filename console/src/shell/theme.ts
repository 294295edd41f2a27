// Light or dark theme: the system's setting or the person's choice.
import { effect, signal } from "@preact/signals";

const dark = matchMedia("(prefers-color-scheme: dark)");
const KEY = "five-theme";

function kept(): string | null {
  try { return localStorage.getItem(KEY); } catch { return null; }
}

/** "light" or "dark". */
export const theme = signal<string>(kept() ?? (dark.matches ? "dark" : "light"));

dark.addEventListener("change", () => { if (!kept()) theme.value = dark.matches ? "dark" : "light"; });

export function turn(): void {
  theme.value = theme.value === "dark" ? "light" : "dark";
  try { localStorage.setItem(KEY, theme.value); } catch { /* kept until the page is closed */ }
}

effect(() => { document.documentElement.dataset.theme = theme.value; });

/** A colour of the style sheet, for canvases. */
export function colour(name: string, otherwise = "--text"): string {
  const style = getComputedStyle(document.documentElement);
  return style.getPropertyValue(name).trim() || style.getPropertyValue(otherwise).trim();
}
