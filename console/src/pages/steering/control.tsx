import { post } from "../../api/client";
import { overview } from "../../api/run";
import { ActButton } from "../../components/act";
import { useNow } from "../../components/now";
import { span } from "../../text";

interface StatusNow { status: string }

const SAYS = {
  pause: "Games send their last segments and stop; learning stops. Nothing is lost: a resume continues the same games.",
  resume: "The run continues.",
  stop: "Services drain and the optimizer writes a checkpoint. On a laptop `five train` ends; it can be started again.",
};

/** The run's status, also when it arrives after the dialog has opened. */
const Status = () => <>{overview.value?.status ?? "…"}</>;

function act(verb: "pause" | "resume" | "stop") {
  return {
    verb: verb[0]?.toUpperCase() + verb.slice(1), says: <p>{SAYS[verb]}</p>, danger: verb === "stop", reasoned: true,
    rehearse: async () => {
      const then = await post<StatusNow>(verb, {}, { dry_run: true });
      return <p>The run would be <b>{then.status}</b>; it is <Status /> now.</p>;
    },
    carryOut: (reason: string) => post(verb, { reason }),
  };
}

/** Status of the run, and the actions pause, resume and stop. */
export function Control() {
  const now = overview.value, time = useNow();
  return <section class="card"><h2>The run</h2>
    {now && <p>It is <b>{now.status}</b> for {span(time - now.since)}, by {now.by}{now.reason ? `: ${now.reason}` : "."}</p>}
    {now && now.waiting_for.length > 0 && <p class="warn">Not idle yet: {now.waiting_for.join(", ")}.</p>}
    <p class="buttons"><ActButton act={act("pause")} /><ActButton act={act("resume")} /><ActButton act={act("stop")} /></p>
  </section>;
}
