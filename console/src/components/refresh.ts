import { useEffect, useRef } from "preact/hooks";
import { useSignalEffect } from "@preact/signals";
import { changeCount } from "../api/live";

/** Calls `read` after new versions and events, at most once in `ms`. Returns a function that requests one more call.
 *
 * A page that reconnects receives thousands of missed events at once, and a fast run a version a second.
 */
export function useRefresh(read: () => void, ms: number): () => void {
  const state = useRef({
    read, timer: 0, readAt: performance.now(), mounted: true, changes: changeCount.peek() }).current;
  state.read = read;
  const request = (): void => {
    if (!state.mounted || state.timer) return;
    state.timer = window.setTimeout(() => {
      state.timer = 0;
      state.readAt = performance.now();
      state.read();
    }, Math.max(0, state.readAt + ms - performance.now()));
  };
  useSignalEffect(() => {
    if (changeCount.value === state.changes) return;
    state.changes = changeCount.value;
    request();
  });
  useEffect(() => {
    state.mounted = true;
    return () => {
      state.mounted = false;
      clearTimeout(state.timer);
      state.timer = 0;
    };
  }, []);
  return request;
}
