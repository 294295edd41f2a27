import { useState } from "preact/hooks";

/** Number input. It keeps what is typed while that is not a number yet, such as "0." and "2e-". */
export function NumberField({ label, value, onChange, unit = "", ...limits }: {
  label: string; value: number; onChange: (value: number) => void; unit?: string; min?: number; max?: number; step?: number | "any";
}) {
  const [typed, setTyped] = useState<string | null>(null);
  // With an incomplete number the browser reports "". Any other value would replace the text in the field.
  return <label>{label} <input type="number" {...limits} value={typed ?? value} onBlur={() => setTyped(null)} onInput={(event) => {
    const text = event.currentTarget.value;
    setTyped(text);
    if (text !== "" && Number.isFinite(Number(text))) onChange(Number(text));
  }} />{unit && ` ${unit}`}</label>;
}
