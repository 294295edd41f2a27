// The controller's REST API (docs/api.md), as the console calls it: with its cookie, never with a token.
import { signal } from "@preact/signals";
import { base } from "../base";

/** What problem details (RFC 9457) say. */
export class Problem extends Error {
  constructor(readonly status: number, readonly kind: string, detail: string,
              readonly errors: readonly { where: string; what: string }[] = []) {
    super(detail);
  }
}

/** Whether the last answer said that nobody is logged in. */
export const loggedOut = signal(false);

export interface Asking {
  parameters?: Record<string, string | number | boolean | undefined>;
  body?: unknown;
  match?: string;
}

async function problemOf(answer: Response): Promise<Problem> {
  try {
    const said = await answer.json();
    return new Problem(answer.status, String(said.type ?? "").split(":").pop() ?? "", String(said.detail ?? said.title),
                       said.errors ?? []);
  } catch {
    return new Problem(answer.status, "unreadable", `the controller answered ${answer.status} ${answer.statusText}`);
  }
}

/** One request below /v1. Raises Problem when the controller says no or does not answer. */
export async function ask(method: string, path: string, asking: Asking = {}): Promise<Response> {
  const address = new URL(`${base}/v1/${path}`, location.origin);
  for (const [name, value] of Object.entries(asking.parameters ?? {}))
    if (value !== undefined) address.searchParams.set(name, String(value));
  const headers: Record<string, string> = {};
  if (method !== "GET") {
    // Forms and links of other pages cannot send this header: see services/controller/console/sessions.py.
    headers["X-Five-Console"] = __BUILD__;
    headers["Idempotency-Key"] = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
  }
  if (asking.body !== undefined) headers["Content-Type"] = "application/json";
  if (asking.match) headers["If-Match"] = asking.match;
  let answer: Response;
  try {
    answer = await fetch(address, { method, headers, credentials: "same-origin", cache: "no-store",
                                    body: asking.body === undefined ? null : JSON.stringify(asking.body) });
  } catch {
    throw new Problem(0, "silent", "the controller does not answer");
  }
  if (answer.status === 401) loggedOut.value = true;
  if (!answer.ok) throw await problemOf(answer);
  return answer;
}

export async function get<T>(path: string, parameters: Asking["parameters"] = {}): Promise<T> {
  return (await ask("GET", path, { parameters })).json();
}

export async function post<T>(path: string, body?: unknown, parameters: Asking["parameters"] = {}): Promise<T> {
  return (await ask("POST", path, { body, parameters })).json();
}
