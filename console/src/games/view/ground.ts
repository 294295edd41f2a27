// Static layer of the map: heights, trees. Redrawn when a tree falls or the view moves.
import type { Header } from "../decode/stream.ts";
import type { Camera } from "./camera.ts";
import type { Colours } from "./colours.ts";
import { ground } from "./colours.ts";

/** Returns the heights as an image, one pixel for each cell, north up. */
export function heights(map: Header["map"], dark: boolean): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = map.cells;
  const pen = canvas.getContext("2d")!;
  const picture = pen.createImageData(map.cells, map.cells);
  let cell = 0;
  for (let k = 0; k + 1 < map.elevation.length; k += 2) {
    const [r, g, b] = ground(map.elevation[k]!, dark);
    for (let n = Math.min(map.elevation[k + 1]!, map.cells * map.cells - cell); n > 0; n--, cell++) {
      const x = cell % map.cells, y = map.cells - 1 - Math.floor(cell / map.cells);
      const at = 4 * (y * map.cells + x);
      picture.data[at] = r; picture.data[at + 1] = g; picture.data[at + 2] = b; picture.data[at + 3] = 255;
    }
  }
  pen.putImageData(picture, 0, 0);
  return canvas;
}

export function drawGround(pen: CanvasRenderingContext2D, camera: Camera, map: Header["map"], picture: HTMLCanvasElement,
                           felled: Uint8Array | undefined, colours: Colours): void {
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.fillStyle = colours.dark ? "#101418" : "#b2b8bc";
  pen.fillRect(0, 0, camera.width, camera.height);
  pen.imageSmoothingEnabled = true;
  const [left, top] = camera.at(map.x, map.y + map.extent);
  pen.drawImage(picture, left, top, camera.length(map.extent), camera.length(map.extent));
  const r = Math.max(camera.length(55), 1);
  pen.fillStyle = colours.dark ? "#2f5138" : "#6f9a6b";
  pen.beginPath();
  map.trees.forEach(([x, y], k) => {
    if (felled && felled[k >> 3]! >> (k & 7) & 1) return;
    const [px, py] = camera.at(x, y);
    if (px < -r || py < -r || px > camera.width + r || py > camera.height + r) return;
    pen.moveTo(px + r, py);
    pen.arc(px, py, r, 0, 2 * Math.PI);
  });
  pen.fill();
}
