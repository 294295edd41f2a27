import { Anneal } from "./anneal";
import { Control } from "./control";
import { Operations } from "./operations";
import { Revert } from "./revert";
import { Schedules } from "./schedules";
import { Surgery } from "./surgery";

/** Everything that changes a run. Each act shows what it would do, and asks once. */
export function SteeringPage() {
  return <>
    <h1>Steering</h1>
    <div class="columns"><Control /><Operations /></div>
    <Schedules />
    <Surgery />
    <div class="columns"><Anneal /><Revert /></div>
  </>;
}
