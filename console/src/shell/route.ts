// Router. The URL holds the complete location in the console, so that it can be saved and shared.
import { computed, signal } from "@preact/signals";
import { base } from "../base";

const address = signal(new URL(location.href));
// A page opened from a file cannot change its URL in every browser; navigation works without it.
let fixed = false;

/** The path within the console, "/" for the first page. */
export const path = computed(() => {
  const whole = address.value.pathname;
  return (whole.startsWith(base) ? whole.slice(base.length) : whole).replace(/\/+$/, "") || "/";
});
/** Parameters of the URL. */
export const query = computed(() => address.value.searchParams);

/** Goes to another page of the console. */
export function go(to: string): void {
  history.pushState(null, "", base + to);
  address.value = new URL(location.href);
  window.scrollTo(0, 0);
}

/** Stores parameters in the URL without a step in the history; null removes a parameter. */
export function note(parameters: Record<string, string | null>): void {
  const now = fixed ? address.value.href : location.href;
  const next = new URL(now);
  for (const [name, value] of Object.entries(parameters)) {
    if (value === null) next.searchParams.delete(name);
    else next.searchParams.set(name, value);
  }
  if (next.href === now) return;
  try {
    history.replaceState(null, "", next);
  } catch {
    fixed = true;
  }
  address.value = next;
}

addEventListener("popstate", () => { address.value = new URL(location.href); });
