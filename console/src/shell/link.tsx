import type { ComponentChildren } from "preact";
import { base } from "../base";
import { go } from "./route";

/** Link within the console, without a reload. Keyboards, new tabs and screen readers find a plain link. */
export function Link({ to, current = false, children }: { to: string; current?: boolean; children: ComponentChildren }) {
  const click = (event: MouseEvent) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    go(to);
  };
  return <a href={base + to} onClick={click} aria-current={current ? "page" : undefined}>{children}</a>;
}
