// Confirmation dialog of every change: shows the controller's dry run first and asks once.
import { useEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { signal } from "@preact/signals";
import { Problem } from "../api/client";
import { isOperator, who } from "../api/session";

export interface Act<T = unknown> {
  /** Text of its button, such as "Pause". */
  verb: string;
  /** Description of its effect. */
  says: ComponentChildren;
  danger?: boolean;
  /** The controller's dry run: its answer is shown, its refusal ends the dialog. */
  rehearse?: () => Promise<ComponentChildren>;
  carryOut: (reason: string) => Promise<T>;
  /** Whether the dialog asks for a reason, which is stored. */
  reasoned?: boolean;
  done?: (result: T) => void;
}

const openAct = signal<Act<never> | null>(null);

function openDialog<T>(act: Act<T>): void {
  openAct.value = act as unknown as Act<never>;
}

export function errorText(error: unknown): string {
  if (error instanceof Problem)
    return [error.message, ...error.errors.map((e) => `${e.where}: ${e.what}`)].join("\n");
  return error instanceof Error ? error.message : String(error);
}

/** Button that opens the dialog of an action. For a viewer it is disabled and says why. */
export function ActButton<T>({ act, disabled = "" }: { act: Act<T>; disabled?: string }) {
  const why = disabled || (isOperator.value ? "" : `${who.value?.name ?? "this session"} is a viewer`);
  return <button type="button" class={act.danger ? "danger" : ""} aria-disabled={why !== ""} title={why || undefined}
                 onClick={() => { if (!why) openDialog(act); }}>{act.verb}</button>;
}

export function ActDialog() {
  const act = openAct.value;
  const dialog = useRef<HTMLDialogElement>(null);
  const [shown, setShown] = useState<ComponentChildren>(null);
  const [state, setState] = useState<"looking" | "ready" | "refused" | "acting">("looking");
  const [error, setError] = useState("");
  const [reason, setReason] = useState("");

  useEffect(() => {
    const element = dialog.current;
    if (!act) { element?.close(); return; }
    setShown(null); setError(""); setReason("");
    setState(act.rehearse ? "looking" : "ready");
    if (element && !element.open) element.showModal();
    let here = true;
    act.rehearse?.().then(
      (found) => { if (here) { setShown(found); setState("ready"); } },
      (wrong: unknown) => { if (here) { setError(errorText(wrong)); setState("refused"); } });
    return () => { here = false; };
  }, [act]);

  if (!act) return <dialog ref={dialog} />;
  const close = () => { openAct.value = null; };
  const carryOut = async (event: Event) => {
    event.preventDefault();
    if (state !== "ready") return;
    setState("acting");
    try {
      const result = await act.carryOut(reason.trim());
      close();
      act.done?.(result);
    } catch (wrong) {
      setError(errorText(wrong));
      setState("refused");
    }
  };
  // While the request is under way its result would be lost with the dialog.
  return <dialog ref={dialog} aria-labelledby="act-title" onClose={close} onCancel={(event) => { if (state === "acting") event.preventDefault(); }}>
    <form onSubmit={carryOut}>
      <h2 id="act-title">{act.verb}?</h2>
      <div>{act.says}</div>
      {state === "looking" && <p class="quiet" role="status">Asking the controller what would happen…</p>}
      {shown !== null && <div class="rehearsed">{shown}</div>}
      {act.reasoned && <p><label>Reason <input value={reason} maxLength={500}
        onInput={(event) => setReason(event.currentTarget.value)} /></label></p>}
      {error && <p class="bad pre" role="alert">{error}</p>}
      <p class="buttons">
        <button type="button" onClick={close} disabled={state === "acting"}>{state === "refused" ? "Close" : "Not now"}</button>
        {state !== "refused" && <button type="submit" class={act.danger ? "danger" : "primary"}
          disabled={state !== "ready"}>{state === "acting" ? "Asking…" : act.verb}</button>}
      </p>
    </form>
  </dialog>;
}
