import { overview } from "../../api/run";

/** The run as a whole. */
export function RunPage() {
  const now = overview.value;
  if (!now) return <p class="quiet">Asking the controller…</p>;
  return <dl class="facts">
    <div><dt>status</dt><dd>{now.status}</dd></div>
    <div><dt>version</dt><dd>{now.version ?? "none yet"}</dd></div>
    <div><dt>epoch</dt><dd>{now.epoch}</dd></div>
  </dl>;
}
