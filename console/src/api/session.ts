// Login with one-time links, and the permissions of this session.
import { computed, signal } from "@preact/signals";
import { Problem, get, loggedOut, post, request } from "./client";

const RETRY_MS = 3000;

export interface Who {
  name: string;
  role: "viewer" | "operator";
  run: string;
  build: string;
}

export const who = signal<Who | null>(null);
export const trouble = signal("");
export const isLoggedIn = computed(() => who.value !== null && !loggedOut.value);
export const isOperator = computed(() => who.value?.role === "operator");

function took(found: Who): void {
  who.value = found;
  loggedOut.value = false;
  trouble.value = "";
}

/** Removes a link's code from the URL and returns it; "" without one. */
export function takeCode(): string {
  const code = /^#login=([\w-]+)$/.exec(location.hash)?.[1] ?? "";
  if (code) history.replaceState(null, "", location.pathname + location.search);
  return code;
}

/** Logs in with a code, or reads who is logged in already. Tries again while the controller cannot tell. */
export async function begin(code: string): Promise<void> {
  try {
    if (code) {
      try {
        took(await post<Who>("session", { code }));
        return;
      } catch (error) {
        if (!(error instanceof Problem) || error.isTemporary) throw error;
        trouble.value = error.message;  // ignore an old link in a browser that is already logged in
      }
    }
    took(await get<Who>("session"));
  } catch (error) {
    const ended = error instanceof Problem && error.status === 401;
    const refused = error instanceof Problem && !error.isTemporary;
    // A controller that restarts behind a reverse proxy answers 502 for a while, which does not end the session.
    if (!refused && isLoggedIn.value) return;
    if (!ended) trouble.value = (error as Error).message;
    if (refused) loggedOut.value = true;
    else setTimeout(() => void begin(code), RETRY_MS);
  }
}

export async function logIn(token: string): Promise<void> {
  try {
    took(await post<Who>("session", { token }));
  } catch (error) {
    trouble.value = error instanceof Problem && error.status === 401
      ? "This token is not listed, or has expired." : String((error as Error).message);
  }
}

export async function logOut(): Promise<void> {
  try {
    await request("DELETE", "session");
  } catch (error) {
    if (!(error instanceof Problem && error.status === 401)) {
      trouble.value = `Not logged out: ${(error as Error).message}`;
      return;
    }
  }
  who.value = null;
  trouble.value = "";
  loggedOut.value = true;
}
