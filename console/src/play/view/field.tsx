import { useEffect, useRef } from "preact/hooks";
import type { Signal } from "@preact/signals";
import { coloursOf } from "../../games/view/colours.ts";
import { drawGround, heights } from "../../games/view/ground.ts";
import { Scene } from "../../games/view/scene.ts";
import type { Header } from "../../games/decode/stream.ts";
import { aiming, suits } from "../aiming.ts";
import { world } from "../picking.ts";
import type { Session } from "../session.ts";
import { drawOverlay } from "./overlay.ts";

const EDGE = 14, EDGE_UNITS = 2600, DRAG_PIXELS = 5; // pixels, world units a second, pixels
const TOLD_MS = 100;

/** The map of a played game on two canvases: the ground, below the units with the player's orders.
 *
 * `now` receives the newest frame ten times a second.
 */
export function Field({ session, now }: { session: Session; now: Signal<number> }) {
  const still = useRef<HTMLCanvasElement>(null), moving = useRef<HTMLCanvasElement>(null);
  const place = useRef<HTMLDivElement>(null);
  const { game } = session;

  useEffect(() => {
    // Captured once: a frame may run after the page has released its canvas and before the effect's cleanup.
    const target = moving.current!, canvases = [still.current!, target];
    const [ground, scenery] = canvases.map((c) => c.getContext("2d")!) as [CanvasRenderingContext2D, CanvasRenderingContext2D];
    let frame = 0, before = performance.now(), toldAt = 0, scene: Scene | null = null, of: Header | null = null, picture: HTMLCanvasElement | null = null;
    let drawn = -1, felledBefore: Uint8Array | undefined, dark = false, mean = 0, frames = 0, whole = 0, decoded = 0;
    const draw = (at: number): void => {
      frame = requestAnimationFrame(draw);
      const passed = Math.min(at - before, 250), began = performance.now(), { steps } = game, view = session.view();
      before = at;
      if (!steps || !view) return;
      const { header } = steps, { map } = header;
      const box = target.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
      const width = Math.max(Math.round(box.width * ratio), 1), height = Math.max(Math.round(box.height * ratio), 1);
      if (target.width !== width || target.height !== height) { for (const c of canvases) { c.width = width; c.height = height; } drawn = -1; }
      view.resize(width, height);
      const sample = steps.sample(began);
      if (!sample) return;
      session.sample = sample;
      if (session.edge) {
        const { x, y } = session.pointer, edge = EDGE * ratio, far = view.length(EDGE_UNITS) * passed / 1000;
        if (session.pointer.inside) view.drag(x < edge ? far : x > width - edge ? -far : 0, y < edge ? far : y > height - edge ? -far : 0);
      }
      const colours = coloursOf(target);
      if (of !== header) { of = header; scene = new Scene(header); picture = null; }
      if (!picture || dark !== colours.dark) { picture = heights(map, dark = colours.dark); drawn = -1; }
      const felled = sample.from.frame.bits.felled;
      if (view.moves !== drawn || felled !== felledBefore) { drawGround(ground, view, map, picture, felled, colours); drawn = view.moves; felledBefore = felled; }
      scene!.draw(scenery, view, colours, sample.from, sample.to, sample.share, { fog: session.eyes < 0 ? "none" : session.team ? "dire" : "radiant", hero: session.hero.peek(), names: true });
      const aim = aiming.peek(), hover = session.under(), hero = session.now();
      drawOverlay(scenery, view, header, colours, began, session.pointer, aim, hover, !aim || !hover || suits(aim, hover, session.team), hero, session.team,
        game.traces(), game.recentPings(), (slot) => session.placeOf(slot), session.unseen());
      game.drew(sample.frame);
      if (at - toldAt > TOLD_MS) { toldAt = at; now.value = steps.newest; }
      const took = performance.now() - began + (steps.decodeMs - decoded);
      decoded = steps.decodeMs;
      frames++;
      whole += took;
      mean += (took - mean) * 0.05;
      // Measurements of the page's cost, for benchmarks.
      Object.assign(target.dataset, { ms: mean.toFixed(3), frames: String(frames), whole: whole.toFixed(1), frame: String(sample.frame), newest: String(steps.newest),
        acks: String(game.acks), answered50: game.answered.quantile(0.5).toFixed(1), answered99: game.answered.quantile(0.99).toFixed(1),
        shown50: game.shown.quantile(0.5).toFixed(1), shown99: game.shown.quantile(0.99).toFixed(1), bytes: String(steps.bytes) });
      if (hero) {
        const [x, y] = world(header, [hero.x, hero.y]), [px, py] = view.at(x, y);
        Object.assign(target.dataset, { hero: `${Math.round(x)},${Math.round(y)}`, pixel: `${Math.round(px / ratio)},${Math.round(py / ratio)}` });
      }
    };
    frame = requestAnimationFrame(draw);
    place.current!.focus();
    return () => cancelAnimationFrame(frame);
  }, [session]);

  const pixel = (event: MouseEvent): [number, number] => {
    const canvas = event.currentTarget as HTMLCanvasElement, box = canvas.getBoundingClientRect(), ratio = canvas.width / box.width;
    return [(event.clientX - box.left) * ratio, (event.clientY - box.top) * ratio];
  };
  const drag = useRef<{ at: [number, number]; far: boolean } | null>(null);
  const point = (event: MouseEvent): void => {
    const [x, y] = pixel(event);
    session.pointer = { x, y, inside: true };
    session.edge = true;
    const held = drag.current;
    if (!held || !(event.buttons & 5)) return;
    if (!held.far && Math.hypot(x - held.at[0], y - held.at[1]) < DRAG_PIXELS) return;
    session.camera?.drag(x - held.at[0], y - held.at[1]);
    drag.current = { at: [x, y], far: true };
  };
  const down = (event: MouseEvent): void => {
    place.current?.focus();
    point(event);
    if (event.button === 2) {
      event.preventDefault();
      session.act(event.shiftKey, event.timeStamp);
    } else if (event.button === 0 && aiming.peek()) session.fire(event.shiftKey, event.timeStamp);
    else if (event.button === 0 && event.altKey) session.ping();
    else drag.current = { at: pixel(event), far: false };
  };
  const wheel = (event: WheelEvent): void => {
    event.preventDefault();
    session.camera?.zoomAt(...pixel(event), event.deltaY < 0 ? 1.15 : 1 / 1.15);
  };
  const label = "The game. Keys: question mark. Escape leaves it for the buttons.";
  return <div ref={place} class={`field${aiming.value ? " aiming" : ""}`} role="application" tabIndex={0} aria-label={label} data-field="">
    <canvas ref={still} aria-hidden="true" />
    <canvas ref={moving} aria-hidden="true" class="moving" onMouseMove={point} onMouseDown={down} onWheel={wheel} onContextMenu={(event) => event.preventDefault()}
      onMouseUp={() => { drag.current = null; }} onMouseLeave={() => { session.pointer = { ...session.pointer, inside: false }; drag.current = null; }} />
  </div>;
}
