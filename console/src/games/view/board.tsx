import { useEffect, useRef } from "preact/hooks";
import type { Signal } from "@preact/signals";
import type { Film } from "../film.ts";
import type { Playback } from "../playback.ts";
import { column, tableOf } from "../reading.ts";
import { Camera } from "./camera.ts";
import { coloursOf } from "./colours.ts";
import { drawGround, heights } from "./ground.ts";
import type { Showing } from "./scene.ts";
import { Scene } from "./scene.ts";

/** The map on two canvases: the ground, which is drawn again when the view moves or a tree falls, below the units.
 *
 * `now` receives the shown step five times a second.
 */
export function Board({ film, playback, showing, choose, now }: {
  film: Film; playback: Playback; showing: Signal<Showing>; choose: (hero: number) => void; now: Signal<number>;
}) {
  const still = useRef<HTMLCanvasElement>(null), moving = useRef<HTMLCanvasElement>(null);
  const camera = useRef<Camera | null>(null);

  useEffect(() => {
    // Captured once: a frame may run after the page has released its canvases and before the effect's cleanup.
    const ground = still.current!, target = moving.current!, below = ground.getContext("2d")!, above = target.getContext("2d")!;
    let frame = 0, before = performance.now(), toldAt = 0, scene: Scene | null = null, picture: HTMLCanvasElement | null = null;
    let drawn = "", dark = false, mean = 0;
    const draw = (at: number): void => {
      frame = requestAnimationFrame(draw);
      const header = film.header.peek();
      const passed = Math.min(at - before, 250);
      before = at;
      if (!header) return;
      const began = performance.now();
      playback.pass(passed);
      const { map } = header;
      const view = camera.current ??= new Camera([map.x + map.extent / 2, map.y + map.extent / 2], map.extent);
      const box = target.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
      const width = Math.max(Math.round(box.width * ratio), 1), height = Math.max(Math.round(box.height * ratio), 1);
      if (target.width !== width || target.height !== height)
        for (const canvas of [ground, target]) { canvas.width = width; canvas.height = height; drawn = ""; }
      view.resize(width, height);
      const position = playback.position.peek(), step = Math.floor(position);
      const from = film.at(step), to = film.at(step + 1) ?? from;
      if (!from || !to) return;
      const colours = coloursOf(target);
      scene ??= new Scene(header);
      if (!picture || dark !== colours.dark) { picture = heights(map, dark = colours.dark); drawn = ""; }
      const felled = from.frame.bits.felled, key = `${view.moves}|${felled?.join("")}`;
      if (key !== drawn) { drawGround(below, view, map, picture, felled, colours); drawn = key; }
      scene.draw(above, view, colours, from, to, position - step, showing.peek());
      if (at - toldAt > 200) { toldAt = at; now.value = step; }
      mean += (performance.now() - began - mean) * 0.05;
      target.dataset.ms = mean.toFixed(3);
      target.dataset.step = String(step);
    };
    frame = requestAnimationFrame(draw);
    return () => cancelAnimationFrame(frame);
  }, [film, playback]);

  const pixel = (event: MouseEvent): [number, number] => {
    const box = moving.current!.getBoundingClientRect(), ratio = moving.current!.width / box.width;
    return [(event.clientX - box.left) * ratio, (event.clientY - box.top) * ratio];
  };
  const drag = useRef<[number, number] | null>(null);
  const wheel = (event: WheelEvent): void => {
    event.preventDefault();
    camera.current?.zoomAt(...pixel(event), event.deltaY < 0 ? 1.2 : 1 / 1.2);
  };
  const move = (event: MouseEvent): void => {
    if (!drag.current || !event.buttons) return;
    const [x, y] = pixel(event);
    camera.current?.drag(x - drag.current[0], y - drag.current[1]);
    drag.current = [x, y];
  };
  const click = (event: MouseEvent): void => {
    const header = film.header.peek(), step = film.at(Math.floor(playback.position.peek()));
    const table = header && tableOf(header.schema, "unit"), rows = step?.frame.tables.unit;
    if (!table || !rows || !camera.current) return;
    const [px, py] = pixel(event), w = table.fields.length;
    let best = -1, nearest = 24;
    for (let at = 0; at < rows.length; at += w) {
      const hero = (rows[at + column(table, "look")]! >> 11) - 1;
      if (hero < 0) continue;
      const { map } = header;
      const [x, y] = camera.current.at(map.x + rows[at + column(table, "x")]! / 65535 * map.extent, map.y + rows[at + column(table, "y")]! / 65535 * map.extent);
      const far = Math.hypot(x - px, y - py);
      if (far < nearest) { nearest = far; best = hero; }
    }
    if (best >= 0) choose(best);
  };
  const key = (event: KeyboardEvent): void => {
    const view = camera.current;
    if (!view) return;
    const far = 60;
    const does: Record<string, () => void> = {
      "+": () => view.zoomAt(view.width / 2, view.height / 2, 1.25), "-": () => view.zoomAt(view.width / 2, view.height / 2, 0.8),
      ArrowLeft: () => view.drag(far, 0), ArrowRight: () => view.drag(-far, 0), ArrowUp: () => view.drag(0, far), ArrowDown: () => view.drag(0, -far),
    };
    if (!does[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    does[event.key]!();
  };
  return <div class="board" role="application" tabIndex={0} aria-label="Map. Arrow keys move it, plus and minus zoom." onKeyDown={key}>
    <canvas ref={still} aria-hidden="true" />
    <canvas ref={moving} aria-hidden="true" class="moving" onWheel={wheel} onMouseMove={move} onClick={click}
      onMouseDown={(event) => { drag.current = pixel(event); }} />
  </div>;
}
