// Events of the page: one contiguous range up to the newest known event.
import { signal } from "@preact/signals";
import { get } from "../../api/client";
import { eventCount } from "../../api/live";
import type { Page, RunEvent } from "../../api/types";

const PAGE = 200;
const MOST = 1000;  // events in a response; with more new ones the page restarts at the newest
const KEPT = 2000;  // live rows that an open page keeps, in addition to rows requested by hand

export const rows = signal<readonly RunEvent[]>([]);
/** Cursor of the events before the rows; null: none. */
export const older = signal<string | null>(null);
export const trouble = signal("");

let newest: string | null = null;
let asked = 0;  // rows requested by hand
let busy = false;
let again = false;

async function begin(): Promise<void> {
  const page = await get<Page<RunEvent>>("events", { limit: PAGE });
  rows.value = page.items;
  older.value = page.older;
  newest = page.newer;
  asked = 0;
}

/** Reads the events since the newest row, in order. The stream only reports that there are some. */
async function catchUp(): Promise<void> {
  if (newest === null) return begin();
  const page = await get<Page<RunEvent>>("events", { limit: MOST, after: newest });
  if (page.items.length === MOST) return begin();
  const all = [...page.items.reverse(), ...rows.peek()], most = KEPT + asked;
  if (all.length > most) older.value = all[most - 1]!.id;
  rows.value = all.slice(0, most);
  newest = page.newer;
}

async function look(): Promise<void> {
  if (busy) { again = true; return; }
  busy = true;
  try {
    do {
      again = false;
      await catchUp();
    } while (again);
    trouble.value = "";
  } catch (error) {
    trouble.value = (error as Error).message;  // the next event or connection retries
  } finally {
    busy = false;
  }
}

/** Follows the run until the returned function is called. */
export function follow(): () => void {
  newest = null;
  return eventCount.subscribe(() => void look());
}

export async function more(): Promise<void> {
  const before = older.peek();
  if (!before) return;
  try {
    const page = await get<Page<RunEvent>>("events", { limit: PAGE, before });
    if (older.peek() !== before) return;  // the older range changed during the request
    rows.value = [...rows.peek(), ...page.items];
    older.value = page.older;
    asked += page.items.length;
  } catch (error) {
    trouble.value = (error as Error).message;
  }
}
