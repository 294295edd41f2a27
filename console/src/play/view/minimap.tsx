import { useEffect, useRef } from "preact/hooks";
import { coloursOf } from "../../games/view/colours.ts";
import { heights } from "../../games/view/ground.ts";
import { quantised, units, world } from "../picking.ts";
import type { Session } from "../session.ts";
import type { Place } from "../wire.ts";

const SIDE = 220, LOOK_MS = 100;
const LARGE = new Set(["tower", "barracks", "fort", "shrine", "fountain", "roshan"]);

/** Mini map. A click moves the view, Alt + click pings, a right click moves the hero. */
export function MiniMap({ session }: { session: Session }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    let picture: HTMLCanvasElement | null = null, dark: boolean | null = null;
    const draw = (): void => {
      const { steps } = session.game, frame = steps?.last?.frame, camera = session.camera;
      if (!steps || !frame || !camera || !canvas.current) return;
      const pen = canvas.current.getContext("2d")!, { header } = steps, { map } = header, colours = coloursOf(canvas.current);
      if (!picture || dark !== colours.dark) picture = heights(map, dark = colours.dark);
      pen.imageSmoothingEnabled = true;
      pen.drawImage(picture, 0, 0, SIDE, SIDE);
      const at = (x: number, y: number): [number, number] => [(x - map.x) / map.extent * SIDE, SIDE - (y - map.y) / map.extent * SIDE];
      pen.lineWidth = 1;
      for (const ghost of session.unseen()) {
        const [x, y] = at(ghost.x, ghost.y);
        pen.strokeStyle = colours.teams[ghost.team] ?? colours.teams[2];
        pen.strokeRect(x - 2.5, y - 2.5, 5, 5);
      }
      const own = session.now()?.slot ?? -1;
      for (const unit of units(header, frame, session.eyes)) {
        const [x, y] = at(...world(header, [unit.x, unit.y])), r = unit.kind === "hero" ? 4.5 : LARGE.has(unit.kind) ? 3 : 1.5;
        pen.fillStyle = colours.teams[unit.team] ?? colours.teams[2];
        pen.beginPath();
        if (unit.team === 1) { pen.moveTo(x, y - r * 1.3); pen.lineTo(x + r * 1.3, y); pen.lineTo(x, y + r * 1.3); pen.lineTo(x - r * 1.3, y); }
        else pen.arc(x, y, r, 0, 2 * Math.PI);
        pen.fill();
        if (unit.kind !== "hero") continue;
        pen.lineWidth = unit.slot === own ? 2.5 : 1;
        pen.strokeStyle = unit.slot === own ? colours.text : colours.dark ? "#000" : "#fff";
        pen.stroke();
      }
      const now = performance.now();
      pen.lineWidth = 2;
      pen.strokeStyle = colours.accent;
      for (const ping of session.game.recentPings()) {
        const [x, y] = at(...world(header, ping.at));
        pen.beginPath();
        pen.arc(x, y, 4 + 10 * ((now - ping.came) / 700 % 1), 0, 2 * Math.PI);
        pen.stroke();
      }
      const [left, lower, right, upper] = camera.shown, [x0, y0] = at(left, upper), [x1, y1] = at(right, lower);
      pen.lineWidth = 1.5;
      pen.strokeStyle = colours.text;
      pen.strokeRect(x0, y0, x1 - x0, y1 - y0);
    };
    const timer = setInterval(draw, LOOK_MS);
    return () => clearInterval(timer);
  }, [session]);
  const place = (event: MouseEvent): readonly [number, number] | null => {
    const header = session.game.header.peek();
    if (!header) return null;
    const box = (event.currentTarget as HTMLCanvasElement).getBoundingClientRect(), { map } = header;
    return [map.x + (event.clientX - box.left) / box.width * map.extent, map.y + (1 - (event.clientY - box.top) / box.height) * map.extent];
  };
  const down = (event: MouseEvent): void => {
    const at = place(event), header = session.game.header.peek();
    if (!at || !header) return;
    event.preventDefault();
    const there: Place = quantised(header, at[0], at[1]);
    if (event.button === 2) session.give({ kind: "move", at: there, queue: event.shiftKey }, event.timeStamp);
    else if (event.altKey) session.game.ping(there);
    else session.camera?.look(at[0], at[1]);
  };
  return <canvas ref={canvas} class="minimap" width={SIDE} height={SIDE} role="img" aria-label="Mini map" onMouseDown={down}
    onMouseMove={(event) => { const at = place(event); if (event.buttons & 1 && !event.altKey && at) session.camera?.look(at[0], at[1]); }}
    onContextMenu={(event) => event.preventDefault()} />;
}
