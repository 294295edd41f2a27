// Overlay above the scene: target and range, unanswered clicks, pings.
import type { Header } from "../../games/decode/stream.ts";
import type { Camera } from "../../games/view/camera.ts";
import type { Colours } from "../../games/view/colours.ts";
import { SIZES } from "../../games/view/scene.ts";
import type { Aiming } from "../aiming.ts";
import type { HeroNow } from "../facts.ts";
import type { Pending, Pinged } from "../game.ts";
import type { Ghost } from "../ghosts.ts";
import type { Unit } from "../picking.ts";
import { world } from "../picking.ts";
import type { Place } from "../wire.ts";

const MARK_MS = 900, PING_MS = 4000;

export interface Pointer { readonly x: number; readonly y: number; readonly inside: boolean }

function circle(pen: CanvasRenderingContext2D, x: number, y: number, r: number): void {
  pen.beginPath();
  pen.arc(x, y, Math.max(r, 1), 0, 2 * Math.PI);
}

/** Draws the overlay. `hover` is the unit under the pointer; `places` returns a unit's position by its slot. */
export function drawOverlay(pen: CanvasRenderingContext2D, camera: Camera, header: Header, colours: Colours, now: number, pointer: Pointer,
                            aiming: Aiming | null, hover: Unit | null, fits: boolean, hero: HeroNow | null, team: number,
                            traces: readonly Pending[], pings: readonly Pinged[], places: (slot: number) => Place | null, ghosts: readonly Ghost[]): void {
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.lineWidth = 2;
  pen.setLineDash([5, 4]);
  for (const ghost of ghosts) {
    const [x, y] = camera.at(ghost.x, ghost.y), size = Math.max(camera.length(SIZES[ghost.kind] ?? 100), 3);
    pen.strokeStyle = colours.teams[ghost.team] ?? colours.teams[2];
    pen.strokeRect(x - size, y - size, 2 * size, 2 * size);
  }
  pen.setLineDash([]);
  for (const trace of traces) {
    const place = trace.order.target ? places(trace.order.target[0]) : trace.order.at;
    if (!place) continue;
    const [x, y] = camera.at(...world(header, place));
    const age = trace.state === "sent" ? 0 : Math.min((now - trace.settled) / MARK_MS, 1);
    if (age >= 1) continue;
    const enemy = trace.order.kind === "attack" || trace.order.kind === "attack_move";
    pen.strokeStyle = trace.state === "refused" ? colours.text : enemy ? colours.teams[1 - team] ?? colours.text : colours.good;
    pen.globalAlpha = 1 - age;
    if (trace.state === "refused") {
      pen.beginPath();
      pen.moveTo(x - 8, y - 8); pen.lineTo(x + 8, y + 8); pen.moveTo(x + 8, y - 8); pen.lineTo(x - 8, y + 8);
      pen.stroke();
    } else {
      circle(pen, x, y, trace.state === "sent" ? 11 : 11 * (1 - age) + 2);
      if (trace.state === "sent") pen.setLineDash([4, 3]);
      pen.stroke();
      pen.setLineDash([]);
      circle(pen, x, y, 2);
      pen.stroke();
    }
    pen.globalAlpha = 1;
  }
  for (const ping of pings) {
    const [x, y] = camera.at(...world(header, ping.at)), age = (now - ping.came) / PING_MS;
    pen.strokeStyle = colours.accent;
    pen.globalAlpha = Math.max(1 - age, 0);
    circle(pen, x, y, 10 + 40 * (age * 4 % 1));
    pen.stroke();
    pen.font = "600 12px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.fillStyle = colours.text;
    pen.fillText(ping.who, x, y - 16);
    pen.globalAlpha = 1;
  }
  if (aiming && hero) {
    const [hx, hy] = camera.at(...world(header, [hero.x, hero.y]));
    pen.strokeStyle = colours.accent;
    if (aiming.range) {
      pen.globalAlpha = 0.7;
      circle(pen, hx, hy, camera.length(aiming.range));
      pen.stroke();
      pen.globalAlpha = 1;
    }
    if (pointer.inside) {
      const [wx, wy] = camera.place(pointer.x, pointer.y), [ux, uy] = world(header, [hero.x, hero.y]);
      const beyond = aiming.range > 0 && Math.hypot(wx - ux, wy - uy) > aiming.range;
      if (aiming.area) {
        pen.fillStyle = colours.accent;
        pen.globalAlpha = beyond ? 0.1 : 0.25;
        circle(pen, pointer.x, pointer.y, camera.length(aiming.area));
        pen.fill();
        pen.globalAlpha = 1;
        pen.stroke();
      }
      pen.strokeStyle = colours.text;
      if (beyond) pen.setLineDash([4, 4]);
      pen.beginPath();
      for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]] as const) {
        pen.moveTo(pointer.x + dx * 6, pointer.y + dy * 6);
        pen.lineTo(pointer.x + dx * 16, pointer.y + dy * 16);
      }
      pen.stroke();
      pen.setLineDash([]);
    }
  } else if (pointer.inside && !hover) {
    pen.strokeStyle = colours.dim;
    pen.lineWidth = 1;
    circle(pen, pointer.x, pointer.y, 3);
    pen.stroke();
  }
  if (hover) {
    const [x, y] = camera.at(...world(header, [hover.x, hover.y]));
    pen.lineWidth = 2;
    pen.strokeStyle = aiming && !fits ? colours.dim : colours.teams[hover.team] ?? colours.teams[2];
    circle(pen, x, y, Math.max(camera.length(150), 16));
    pen.stroke();
    pen.font = "600 12px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.lineWidth = 3;
    pen.strokeStyle = colours.card;
    pen.strokeText(hover.name, x, y - Math.max(camera.length(190), 24));
    pen.fillStyle = colours.text;
    pen.fillText(hover.name, x, y - Math.max(camera.length(190), 24));
  }
}
