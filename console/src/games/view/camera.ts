// Visible part of the map, and the mapping from world to canvas coordinates.
export class Camera {
  width = 1;
  height = 1;
  /** Number of changes of the view. Static layers are drawn again after each. */
  moves = 0;
  private x = 0;
  private y = 0;
  private zoom = 1;
  private readonly extent: number;
  constructor(middle: readonly [number, number], extent: number) {
    [this.x, this.y] = middle;
    this.extent = extent;
  }

  resize(width: number, height: number): void {
    if (width === this.width && height === this.height) return;
    this.width = width;
    this.height = height;
    this.moves++;
  }

  private get scale(): number { return Math.min(this.width, this.height) / this.extent * this.zoom; }

  /** Converts world to canvas coordinates; north is up. */
  at(x: number, y: number): [number, number] {
    return [this.width / 2 + (x - this.x) * this.scale, this.height / 2 - (y - this.y) * this.scale];
  }

  /** Converts canvas to world coordinates. */
  place(px: number, py: number): [number, number] {
    return [this.x + (px - this.width / 2) / this.scale, this.y - (py - this.height / 2) / this.scale];
  }

  length(units: number): number { return units * this.scale; }

  /** Zooms by a factor around a pixel. */
  zoomAt(px: number, py: number, factor: number): void {
    const [x, y] = this.place(px, py);
    this.zoom = Math.min(Math.max(this.zoom * factor, 1), 12);
    const [nx, ny] = this.place(px, py);
    this.go(this.x + x - nx, this.y + y - ny);
  }

  /** Centres the view on a place. */
  look(x: number, y: number): void { this.go(x, y); }

  /** Sets the zoom; 1 shows the whole map. */
  near(zoom: number): void {
    this.zoom = Math.min(Math.max(zoom, 1), 12);
    this.moves++;
  }

  /** The visible part of the map: left, lower, right, upper. */
  get shown(): readonly [number, number, number, number] {
    const [left, upper] = this.place(0, 0), [right, lower] = this.place(this.width, this.height);
    return [left, lower, right, upper];
  }

  /** Moves the view by pixels. */
  drag(dx: number, dy: number): void { this.go(this.x - dx / this.scale, this.y + dy / this.scale); }

  private go(x: number, y: number): void {
    const half = this.extent / 2;
    this.x = Math.min(Math.max(x, -half), half);
    this.y = Math.min(Math.max(y, -half), half);
    this.moves++;
  }
}
