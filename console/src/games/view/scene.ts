// Dynamic layer of the map: fog, areas, units, projectiles, names, interpolated between two steps.
import type { Step } from "../decode/chunk.ts";
import type { Header } from "../decode/stream.ts";
import { column, plain, tableOf, value } from "../reading.ts";
import type { Camera } from "./camera.ts";
import type { Colours } from "./colours.ts";

export const BLINKED = 1 << 10, ALIVE = 1 << 6;
const BORN = 1 << 9, HERO = 1, BUILDINGS = new Set(["tower", "barracks", "fort", "filler", "shrine", "fountain"]);
/** Radii in world units, by kind of unit. */
export const SIZES: Readonly<Record<string, number>> = {
  hero: 130, creep: 55, neutral: 60, roshan: 150, tower: 120, barracks: 120, fort: 230, filler: 70, shrine: 90, fountain: 160,
  courier: 60, ward: 45, summon: 60,
};

export type FogOf = "none" | "radiant" | "dire";
export interface Showing { readonly fog: FogOf; readonly hero: number; readonly names: boolean }

export class Scene {
  private readonly fog: HTMLCanvasElement;
  private fogOf: Uint8Array | undefined;
  private readonly header: Header;
  constructor(header: Header) {
    this.header = header;
    this.fog = document.createElement("canvas");
    this.fog.width = this.fog.height = header.map.fog_cells;
  }

  /** Draws the state at `share`, 0 to 1, between two steps. */
  draw(pen: CanvasRenderingContext2D, camera: Camera, colours: Colours, from: Step, to: Step, share: number, showing: Showing): void {
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, camera.width, camera.height);
    this.drawFog(pen, camera, from, showing.fog, colours);
    this.drawAreas(pen, camera, from, colours);
    this.drawScans(pen, camera, from, colours);
    this.drawUnits(pen, camera, from, to, share, showing, colours);
    this.drawProjectiles(pen, camera, from, to, share, colours);
  }

  private x(v: number): number { return this.header.map.x + v / 65535 * this.header.map.extent; }
  private y(v: number): number { return this.header.map.y + v / 65535 * this.header.map.extent; }

  private drawFog(pen: CanvasRenderingContext2D, camera: Camera, step: Step, of: FogOf, colours: Colours): void {
    const bits = of === "none" ? undefined : step.frame.bits[`${of}_fog`];
    if (!bits) return;
    const n = this.header.map.fog_cells;
    if (bits !== this.fogOf) {
      this.fogOf = bits;
      const paint = this.fog.getContext("2d")!;
      const picture = paint.createImageData(n, n);
      const alpha = colours.dark ? 150 : 110;
      for (let cell = 0; cell < n * n; cell++)
        if (!(bits[cell >> 3]! >> (cell & 7) & 1)) picture.data[4 * ((n - 1 - Math.floor(cell / n)) * n + cell % n) + 3] = alpha;
      paint.putImageData(picture, 0, 0);
    }
    const { map } = this.header;
    const [left, top] = camera.at(map.x, map.y + map.extent);
    pen.imageSmoothingEnabled = true;
    pen.drawImage(this.fog, left, top, camera.length(map.extent), camera.length(map.extent));
  }

  private drawAreas(pen: CanvasRenderingContext2D, camera: Camera, step: Step, colours: Colours): void {
    const table = tableOf(this.header.schema, "area"), rows = step.frame.tables.area;
    if (!table || !rows) return;
    const w = table.fields.length, look = column(table, "look"), x = column(table, "x"), y = column(table, "y"), radius = column(table, "radius");
    for (let at = 0; at < rows.length; at += w) {
      if (!(rows[at + look]! & 1)) continue;
      const [px, py] = camera.at(this.x(rows[at + x]!), this.y(rows[at + y]!));
      const colour = colours.teams[rows[at + look]! >> 4 & 3] ?? colours.teams[2];
      pen.beginPath();
      pen.arc(px, py, Math.max(camera.length(rows[at + radius]!), 2), 0, 2 * Math.PI);
      pen.globalAlpha = 0.18;
      pen.fillStyle = colour;
      pen.fill();
      pen.globalAlpha = 0.8;
      pen.strokeStyle = colour;
      pen.lineWidth = 1;
      pen.stroke();
      pen.globalAlpha = 1;
    }
  }

  /** Draws the teams' scans: a dashed circle, filled when it has found an enemy hero. */
  private drawScans(pen: CanvasRenderingContext2D, camera: Camera, step: Step, colours: Colours): void {
    for (let team = 0; team < 2; team++) {
      const of = (field: string): number => value(this.header.schema, step.frame, "scan", team, field);
      if (!of("until")) continue;
      const [px, py] = camera.at(this.x(of("x")), this.y(of("y")));
      pen.beginPath();
      pen.arc(px, py, Math.max(camera.length(of("radius")), 2), 0, 2 * Math.PI);
      if (of("found")) {
        pen.globalAlpha = 0.3;
        pen.fillStyle = colours.teams[1 - team] ?? colours.teams[2];
        pen.fill();
      }
      pen.globalAlpha = 1;
      pen.strokeStyle = colours.teams[team] ?? colours.teams[2];
      pen.lineWidth = 2;
      pen.setLineDash([10, 6]);
      pen.stroke();
      pen.setLineDash([]);
    }
  }

  private drawUnits(pen: CanvasRenderingContext2D, camera: Camera, from: Step, to: Step, share: number, showing: Showing, colours: Colours): void {
    const { schema, names } = this.header;
    const table = tableOf(schema, "unit"), a = from.frame.tables.unit, b = to.frame.tables.unit;
    if (!table || !a || !b) return;
    const w = table.fields.length;
    const [generation, type, look, cx, cy, facing, hp, maxHp, mana, maxMana, target] =
      ["generation", "type", "look", "x", "y", "facing", "hp", "max_hp", "mana", "max_mana", "target"].map((f) => column(table, f)) as
        [number, number, number, number, number, number, number, number, number, number, number];
    const team = showing.fog === "none" ? 0 : showing.fog === "radiant" ? 1 << 7 : 1 << 8;
    const heroes: number[] = [];
    const place = (at: number): [number, number] => {
      let x = a[at + cx]!, y = a[at + cy]!;
      if (b[at + generation] === a[at + generation] && b[at + type] && !(b[at + look]! & (BORN | BLINKED))) {
        x += (b[at + cx]! - x) * share;
        y += (b[at + cy]! - y) * share;
      }
      return camera.at(this.x(x), this.y(y));
    };
    for (let at = 0; at < a.length; at += w) {
      const l = a[at + look]!;
      if (!a[at + type] || !(l & ALIVE) || (team && !(l & team))) continue;
      const kind = l & 15;
      if (kind === HERO) { heroes.push(at); continue; }
      const [px, py] = place(at);
      if (px < -40 || py < -40 || px > camera.width + 40 || py > camera.height + 40) continue;
      const name = names.kind?.[kind] ?? "", size = Math.max(camera.length(SIZES[name] ?? 55), 2);
      pen.fillStyle = colours.teams[l >> 4 & 3] ?? colours.teams[2];
      if (BUILDINGS.has(name)) {
        pen.fillRect(px - size, py - size, 2 * size, 2 * size);
        pen.strokeStyle = colours.dark ? "#000" : "#fff";
        pen.lineWidth = 1;
        pen.strokeRect(px - size, py - size, 2 * size, 2 * size);
        this.bar(pen, px, py - size - 5, Math.max(size * 1.6, 12), 3, a[at + hp]! / Math.max(a[at + maxHp]!, 1), colours.good);
      } else if ((l >> 4 & 3) === 1) {
        pen.beginPath(); // Dire's are diamonds
        pen.moveTo(px, py - size * 1.2); pen.lineTo(px + size * 1.2, py); pen.lineTo(px, py + size * 1.2); pen.lineTo(px - size * 1.2, py);
        pen.fill();
      } else {
        pen.beginPath();
        pen.arc(px, py, size, 0, 2 * Math.PI);
        pen.fill();
      }
      // Only damaged creeps have a health bar: a bar on each would hide the rest.
      if (!BUILDINGS.has(name) && name !== "roshan" && a[at + hp]! < a[at + maxHp]!)
        this.bar(pen, px, py - size - 4, Math.max(size * 2, 8), 2, a[at + hp]! / Math.max(a[at + maxHp]!, 1), colours.good);
      if (name === "roshan") this.bar(pen, px, py - size - 6, 30, 3, a[at + hp]! / Math.max(a[at + maxHp]!, 1), colours.good);
    }
    pen.textAlign = "center";
    for (const at of heroes) {
      const l = a[at + look]!, hero = (l >> 11) - 1, [px, py] = place(at), size = Math.max(camera.length(SIZES.hero!), 6);
      const colour = colours.teams[l >> 4 & 3] ?? colours.teams[2];
      const turn = a[at + facing]! / 256 * 2 * Math.PI;
      const aimed = a[at + target]!;
      if (hero === showing.hero && aimed && a[(aimed - 1) * w + type]) {
        const [tx, ty] = place((aimed - 1) * w);
        pen.strokeStyle = colour;
        pen.lineWidth = 1.5;
        pen.setLineDash([4, 4]);
        pen.beginPath();
        pen.moveTo(px, py); pen.lineTo(tx, ty);
        pen.stroke();
        pen.setLineDash([]);
      }
      pen.fillStyle = colour;
      pen.beginPath();
      if (hero < 5) pen.arc(px, py, size, 0, 2 * Math.PI);
      else { pen.moveTo(px, py - size * 1.3); pen.lineTo(px + size * 1.3, py); pen.lineTo(px, py + size * 1.3); pen.lineTo(px - size * 1.3, py); pen.closePath(); }
      pen.fill();
      pen.strokeStyle = hero === showing.hero ? colours.text : colours.dark ? "#000" : "#fff";
      pen.lineWidth = hero === showing.hero ? 3 : 1.5;
      pen.stroke();
      pen.beginPath();
      pen.moveTo(px, py);
      pen.lineTo(px + Math.cos(turn) * size * 1.7, py - Math.sin(turn) * size * 1.7);
      pen.stroke();
      const width = Math.max(size * 2.4, 26);
      this.bar(pen, px, py - size - 11, width, 4, a[at + hp]! / Math.max(a[at + maxHp]!, 1), colours.good);
      if (a[at + maxMana]) this.bar(pen, px, py - size - 6, width, 3, a[at + mana]! / a[at + maxMana]!, colours.accent);
      if (showing.names) {
        pen.font = "600 11px system-ui, sans-serif";
        pen.lineWidth = 3;
        pen.strokeStyle = colours.card;
        const name = plain(names.unit?.[a[at + type]! - 1] ?? "");
        pen.strokeText(name, px, py + size + 14);
        pen.fillStyle = colours.text;
        pen.fillText(name, px, py + size + 14);
      }
    }
  }

  private bar(pen: CanvasRenderingContext2D, x: number, y: number, width: number, height: number, share: number, colour: string): void {
    pen.fillStyle = "#000b";
    pen.fillRect(x - width / 2 - 1, y - 1, width + 2, height + 2);
    pen.fillStyle = colour;
    pen.fillRect(x - width / 2, y, width * Math.min(Math.max(share, 0), 1), height);
  }

  private drawProjectiles(pen: CanvasRenderingContext2D, camera: Camera, from: Step, to: Step, share: number, colours: Colours): void {
    const table = tableOf(this.header.schema, "projectile"), a = from.frame.tables.projectile, b = to.frame.tables.projectile;
    if (!table || !a || !b) return;
    const w = table.fields.length, generation = column(table, "generation"), look = column(table, "look"), cx = column(table, "x"), cy = column(table, "y");
    const ability = column(table, "ability");
    for (let at = 0; at < a.length; at += w) {
      const l = a[at + look]!;
      if (!l) continue;
      let x = a[at + cx]!, y = a[at + cy]!;
      if (b[at + generation] === a[at + generation] && b[at + look]) { x += (b[at + cx]! - x) * share; y += (b[at + cy]! - y) * share; }
      const [px, py] = camera.at(this.x(x), this.y(y));
      pen.fillStyle = colours.teams[l >> 4 & 3] ?? colours.teams[2];
      pen.strokeStyle = colours.dark ? "#fff" : "#000";
      pen.lineWidth = 1;
      const r = a[at + ability] ? 4 : 2.2;
      pen.beginPath();
      pen.arc(px, py, r, 0, 2 * Math.PI);
      pen.fill();
      if (a[at + ability]) pen.stroke();
    }
  }
}
