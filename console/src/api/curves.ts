// Curves with a limited number of points, computed by the controller (services/controller/console/curves.py).
import { get } from "./client";

export interface Field { mean: (number | null)[]; low?: (number | null)[]; high?: (number | null)[] }

export interface Curves {
  at: number[];
  fields: Record<string, Field>;
  gaps: [number, number][];
  total: number;
  first: number | null;
  last: number | null;
  names: string[];
}

export type Kind = "versions" | "games" | "ratings";

export function curves(kind: Kind, fields: readonly string[], points: number, from: number | null, to: number | null
                       ): Promise<Curves> {
  return get<Curves>(`console/curves/${kind}`, {
    fields: fields.join(","), points, from: from ?? undefined, to: to ?? undefined });
}
