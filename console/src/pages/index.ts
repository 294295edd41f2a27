// Pages of the console, loaded on first use. A page with paths below its own ("/games/12") sets `deep` and reads them
// from shell/route. The controller serves exactly these paths: services/controller/console/static_files.py lists their
// first parts.
import type { ComponentType } from "preact";

export interface PageDefinition {
  path: string;
  title: string;
  deep?: boolean;
  load: () => Promise<ComponentType>;
}

export const PAGES: readonly PageDefinition[] = [
  { path: "/", title: "Run", load: async () => (await import("./run")).RunPage },
  { path: "/steering", title: "Steering", load: async () => (await import("./steering")).SteeringPage },
  { path: "/league", title: "League", load: async () => (await import("./league")).LeaguePage },
  { path: "/events", title: "Events", load: async () => (await import("./events")).EventsPage },
  { path: "/games", title: "Games", deep: true, load: async () => (await import("./games")).GamesPage },
  { path: "/play", title: "Play", deep: true, load: async () => (await import("./play")).PlayPage },
  { path: "/draft", title: "Draft", load: async () => (await import("./draft")).DraftPage },
  { path: "/docs", title: "API", load: async () => (await import("./docs")).DocsPage },
];
