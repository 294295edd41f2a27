import { useEffect } from "preact/hooks";
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { overview } from "../api/run";
import type { PageDefinition } from "../pages";
import { PAGES } from "../pages";
import { Link } from "./link";
import { path } from "./route";

const loaded = signal<ReadonlyMap<string, ComponentType>>(new Map());

function current(): PageDefinition | undefined {
  return PAGES.find((p) => p.path === path.value || (p.deep && path.value.startsWith(`${p.path}/`)));
}

function Page() {
  const page = current();
  useEffect(() => {
    if (!page || loaded.peek().has(page.path)) return;
    void page.load().then((made) => { loaded.value = new Map(loaded.peek()).set(page.path, made); });
  }, [page]);
  if (!page) return <p>There is no such page. <Link to="/">The run</Link></p>;
  const Made = loaded.value.get(page.path);
  return Made ? <Made /> : <p class="quiet">Loading…</p>;
}

export function App() {
  const now = overview.value;
  return <>
    <a class="skip" href="#content">Skip to content</a>
    <header class="bar">
      <span class="brand">Five</span><span class="run-name">{now?.run ?? ""}</span>
      <nav aria-label="Pages">{PAGES.map((p) =>
        <Link key={p.path} to={p.path} current={current() === p}>{p.title}</Link>)}</nav>
    </header>
    <main id="content" tabIndex={-1}><Page /></main>
  </>;
}
