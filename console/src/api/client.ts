// The controller's REST API (docs/api.md), as the console calls it: with its cookie, never with a token.
import { signal } from "@preact/signals";
import { base } from "../base";

/** Problem details (RFC 9457) of a refused request. */
export class Problem extends Error {
  constructor(readonly status: number, readonly kind: string, detail: string,
              readonly errors: readonly { where: string; what: string }[] = []) {
    super(detail);
  }

  /** Whether the same request may succeed later: no response, too many requests, or a fault of the server. */
  get isTemporary(): boolean { return this.status === 0 || this.status === 429 || this.status >= 500; }
}

/** Whether the last response had status 401. */
export const loggedOut = signal(false);

/** Seconds by which the controller's clock is ahead of the browser's. */
export const clockOffset = signal(0);
const CLOCK_SLACK = 5;  // seconds that a response may take

export interface RequestOptions {
  parameters?: Record<string, string | number | boolean | undefined>;
  body?: unknown;
  match?: string;
}

async function problemOf(answer: Response): Promise<Problem> {
  const status = `the controller answered ${answer.status} ${answer.statusText}`;
  try {
    const said = await answer.json();
    return new Problem(answer.status, String(said.type ?? "").split(":").pop() ?? "",
                       String(said.detail ?? said.title ?? status), said.errors ?? []);
  } catch {
    return new Problem(answer.status, "unreadable", status);
  }
}

// The controller begins each response within 30 s (services.controller.limits.request_seconds).
const TIMEOUT_MS = 40_000;

function compareClocks(answer: Response): void {
  const offset = (Date.parse(answer.headers.get("Date") ?? "") - Date.now()) / 1000;
  if (Math.abs(offset - clockOffset.peek()) > CLOCK_SLACK) clockOffset.value = offset;
}

/** Sends one request below /v1. Raises Problem when the controller refuses it or does not answer. */
export async function request(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
  const address = new URL(`${base}/v1/${path}`, location.origin);
  for (const [name, value] of Object.entries(options.parameters ?? {}))
    if (value !== undefined) address.searchParams.set(name, String(value));
  const headers: Record<string, string> = {};
  if (method !== "GET") {
    // Forms and links of other pages cannot send this header: see services/controller/console/sessions.py.
    headers["X-Five-Console"] = __BUILD__;
    headers["Idempotency-Key"] = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
  }
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  if (options.match) headers["If-Match"] = options.match;
  let answer: Response;
  const deadline = new AbortController(), timer = setTimeout(() => deadline.abort(), TIMEOUT_MS);
  try {
    answer = await fetch(address, { method, headers, credentials: "same-origin", cache: "no-store",
                                    signal: deadline.signal,
                                    body: options.body === undefined ? null : JSON.stringify(options.body) });
  } catch {
    throw new Problem(0, "silent", "the controller does not answer");
  } finally {
    clearTimeout(timer);
  }
  compareClocks(answer);
  if (answer.status === 401) loggedOut.value = true;
  if (!answer.ok) throw await problemOf(answer);
  return answer;
}

export async function get<T>(path: string, parameters: RequestOptions["parameters"] = {}): Promise<T> {
  return (await request("GET", path, { parameters })).json();
}

export async function post<T>(path: string, body?: unknown, parameters: RequestOptions["parameters"] = {}): Promise<T> {
  return (await request("POST", path, { body, parameters })).json();
}
