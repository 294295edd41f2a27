import { useEffect } from "preact/hooks";
import { effect, signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { loggedOut } from "../api/client";
import { connect, disconnect, link, servedBuild } from "../api/live";
import { overview } from "../api/run";
import { begin, isLoggedIn, logOut, takeCode, trouble, who } from "../api/session";
import { ActDialog } from "../components/act";
import type { PageDefinition } from "../pages";
import { PAGES } from "../pages";
import { Link } from "./link";
import { Login } from "./login";
import { path } from "./route";
import { theme, turn } from "./theme";

const loaded = signal<ReadonlyMap<string, ComponentType>>(new Map());
/** Path of the page whose script could not be loaded: the browser does not try again before the console is reloaded. */
const missing = signal("");
const STATUS_MARKS: Record<string, string> = { running: "▶", warming: "▶", paused: "‖", pausing: "‖", stopped: "■", stopping: "■", failed: "!" };

void begin(takeCode());
// A link that is opened in this tab changes only the URL's hash, so the browser does not load the page again.
addEventListener("hashchange", () => {
  const code = takeCode();
  if (code) void begin(code);
});
effect(() => {
  if (isLoggedIn.value) connect();
  else disconnect();
});

/** Whether a reload would interrupt somebody: an action, text that is not sent, a game that is played or watched. */
function isInUse(): boolean {
  return document.querySelector("dialog[open], input:focus, [data-field], .viewer") !== null ||
    [...document.querySelectorAll("textarea")].some((field) => field.value !== "");
}

// A long-lived page reloads itself for a new build, once.
effect(() => {
  const next = servedBuild.value;
  if (!next || next === __BUILD__ || isInUse()) return;
  if (sessionStorage.getItem("five-reloaded-for") === next) return;
  sessionStorage.setItem("five-reloaded-for", next);
  setTimeout(() => location.reload(), 1000);
});

function current(): PageDefinition | undefined {
  return PAGES.find((p) => p.path === path.value || (p.deep && path.value.startsWith(`${p.path}/`)));
}

function Page() {
  const page = current();
  useEffect(() => {
    document.title = [page?.title, overview.value?.run, "Five"].filter(Boolean).join(" · ");
    if (!page || loaded.peek().has(page.path)) return;
    page.load().then((made) => { loaded.value = new Map(loaded.peek()).set(page.path, made); }, () => { missing.value = page.path; });
  }, [page, overview.value?.run]);
  if (!page) return <p>There is no such page. <Link to="/">The run</Link></p>;
  const Made = loaded.value.get(page.path);
  if (Made) return <Made />;
  if (missing.value !== page.path) return <p class="quiet">Loading…</p>;
  return <p role="alert">This page could not be loaded. <button type="button" onClick={() => location.reload()}>Reload the console</button></p>;
}

export function App() {
  if (loggedOut.value) return <Login />;
  if (!who.value) return <main id="content"><p class="quiet">Asking the controller…</p>
    {trouble.value && <p class="bad" role="alert">{trouble.value}; trying again</p>}</main>;
  const now = overview.value;
  return <>
    <a class="skip" href="#content">Skip to content</a>
    <header class="bar">
      <span class="brand">Five</span><span class="run-name">{now?.run ?? who.value.run}</span>
      {now && <span class={`status status-${now.status}`} role="status"><i aria-hidden="true">{STATUS_MARKS[now.status] ?? "…"}</i> {now.status}</span>}
      <nav aria-label="Pages">{PAGES.map((p) => <Link key={p.path} to={p.path} current={current() === p}>{p.title}</Link>)}</nav>
      <span class="spring" />
      {link.value === "lost" && <span class="bad" role="alert">connection lost, trying again</span>}
      {servedBuild.value && servedBuild.value !== __BUILD__ && <button type="button" onClick={() => location.reload()}>A new console is there: reload</button>}
      <button type="button" onClick={turn} aria-label={theme.value === "dark" ? "Light colours" : "Dark colours"}>{theme.value === "dark" ? "☀" : "☾"}</button>
      <span class="quiet">{who.value.name}, {who.value.role}</span>
      {trouble.value && <span class="bad" role="alert">{trouble.value}</span>}
      <button type="button" onClick={() => void logOut()}>Log out</button>
    </header>
    <main id="content" tabIndex={-1}><Page /></main>
    <ActDialog />
  </>;
}
