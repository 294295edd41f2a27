import { Anneal } from "./anneal";
import { Control } from "./control";
import { Operations } from "./operations";
import { Revert } from "./revert";
import { Schedules } from "./schedules";
import { Surgery } from "./surgery";

/** All actions that change a run. Each shows its dry run and asks for one confirmation. */
export function SteeringPage() {
  return <>
    <h1>Steering</h1>
    <div class="columns"><Control /><Operations /></div>
    <Schedules />
    <Surgery />
    <div class="columns"><Anneal /><Revert /></div>
  </>;
}
