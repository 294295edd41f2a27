// A person's interaction with a game, independent of key or click: controlled hero, cursor, view.
import { signal } from "@preact/signals";
import type { Header } from "../games/decode/stream.ts";
import { moment, plain, value } from "../games/reading.ts";
import { Camera } from "../games/view/camera.ts";
import type { Aiming } from "./aiming.ts";
import { aimed, aiming, attacking, resolve, smart, suits } from "./aiming.ts";
import type { AbilityNow, HeroNow, ItemNow } from "./facts.ts";
import { heroNow } from "./facts.ts";
import type { Game } from "./game.ts";
import type { Ghost } from "./ghosts.ts";
import { Ghosts } from "./ghosts.ts";
import type { Unit } from "./picking.ts";
import { lying, quantised, under, unitAt, units, world } from "./picking.ts";
import type { Sample } from "./steps.ts";
import type { Order, Place } from "./wire.ts";

const NEAR = 5.2;

export class Session {
  readonly game: Game;
  /** The hero that the person controls; -1: none. */
  readonly hero = signal(-1);
  readonly learning = signal(false);
  readonly panel = signal<"" | "shop" | "scores" | "talents" | "help">("");
  readonly quick = signal(false);
  camera: Camera | null = null;
  pointer = { x: 0, y: 0, inside: false };
  sample: Sample | undefined;
  /** Whether the view moves while the cursor is at its edge. Only a mouse sets it: keys get there by accident. */
  edge = false;
  private mine: readonly number[] = [];
  private looked = false;
  private ghosts: Ghosts | null = null;
  private ghostsOf: Header | null = null;
  private readonly spectates: boolean;
  constructor(game: Game, spectates: boolean) {
    this.game = game;
    this.spectates = spectates;
  }

  get team(): number { return this.hero.peek() >= 5 ? 1 : 0; }

  /** The team whose vision applies; -1 for a spectator. */
  get eyes(): number { return this.hero.peek() < 0 ? -1 : this.team; }

  /** Sets the person's heroes. The controlled one stays if it is among them. */
  seats(heroes: readonly number[]): void {
    this.mine = heroes;
    if (heroes.length && !heroes.includes(this.hero.peek())) this.hero.value = heroes[0]!;
  }

  /** Switches to another of the person's heroes, by its position among them. */
  lead(place: number): void {
    const hero = this.mine[place];
    if (hero === undefined) return;
    this.hero.value = hero;
    this.centre();
  }

  /** Returns the controlled hero's state in the newest frame. */
  now(): HeroNow | null {
    const { steps } = this.game, frame = steps?.last?.frame;
    return steps && frame && this.hero.peek() >= 0 ? heroNow(steps.header, this.game.facts, frame, this.hero.peek()) : null;
  }

  view(): Camera | null {
    const header = this.game.header.peek();
    if (!header) return null;
    if (!this.camera) {
      const { map } = header;
      this.camera = new Camera([map.x + map.extent / 2, map.y + map.extent / 2], map.extent);
      this.camera.near(this.spectates ? 1 : NEAR);
    }
    // Once, when the hero's position is known.
    if (!this.looked && this.game.steps?.last && this.hero.peek() >= 0) {
      this.looked = this.centre();
    }
    return this.camera;
  }

  /** Returns the enemy buildings that are out of sight. */
  unseen(): readonly Ghost[] {
    const { steps } = this.game, frame = steps?.last?.frame;
    if (!steps || !frame || this.hero.peek() < 0) return [];
    if (this.ghostsOf !== steps.header) {
      this.ghostsOf = steps.header;
      this.ghosts = new Ghosts(steps.header, this.game.facts, this.team);
    }
    return this.ghosts!.of(frame, steps.newest);
  }

  /** Centres the view on the hero; false if the hero has no position. */
  centre(): boolean {
    const header = this.game.header.peek(), hero = this.now();
    if (!header || !hero || !this.camera || !(hero.x || hero.y)) return false;
    this.camera.look(...world(header, [hero.x, hero.y]));
    return true;
  }

  give(order: Order, began: number): void {
    if (this.spectates) return;
    const hero = this.hero.peek();
    this.game.order(this.mine.length > 1 ? { ...order, hero } : order, began);
  }

  private place(): Place | null {
    const header = this.game.header.peek();
    if (!header || !this.camera) return null;
    return quantised(header, ...this.camera.place(this.pointer.x, this.pointer.y));
  }

  /** Returns the nearest unit under the cursor that `wanted` accepts. */
  under(wanted: (unit: Unit) => boolean = () => true): Unit | null {
    const { steps } = this.game, frame = this.sample?.from.frame;
    return steps && frame && this.camera && this.pointer.inside ?
      under(steps.header, frame, this.camera, this.pointer.x, this.pointer.y, this.eyes, wanted) : null;
  }

  /** Carries out a right click: move, attack, follow or pick up. Cancels an aimed order instead. */
  act(queue: boolean, began: number): void {
    if (aiming.peek()) { aiming.value = null; return; }
    const at = this.place(), { steps } = this.game, frame = this.sample?.from.frame;
    if (!at || !steps || !frame || !this.camera) return;
    const own = this.now()?.slot ?? -1, unit = this.under((u) => u.slot !== own);
    this.give(smart(unit, lying(steps.header, frame, this.camera, this.pointer.x, this.pointer.y), at, this.team, queue), began);
  }

  /** Gives the aimed order at the cursor. */
  fire(queue: boolean, began: number): void {
    const aim = aiming.peek(), at = this.place();
    if (!aim || !at) return;
    const own = this.now()?.slot ?? -1;
    const unit = this.under((u) => suits(aim, u, this.team) && !(aim.kind === "attack_move" && u.slot === own));
    const order = resolve(queue ? { ...aim, queue } : aim, unit, at);
    if (!order) { this.game.say(`${plain(aim.name)} needs a target`); return; }
    if (!queue) aiming.value = null;
    this.give(order, began);
  }

  /** Aims an order, or gives it at once if it needs no target. Aimed twice, it targets the hero. */
  begin(next: Aiming | null, otherwise: Order, queue: boolean, began: number): void {
    if (this.spectates) return;
    const aim = aiming.peek();
    if (!next) { this.give({ ...otherwise, queue }, began); return; }
    if (aim && aim.kind === next.kind && aim.slot === next.slot && next.kind !== "attack_move") {
      const hero = this.now();
      aiming.value = null;
      if (hero?.unit) this.give(next.aim.includes("unit") ? { ...otherwise, target: hero.unit, at: [hero.x, hero.y], queue } : { ...otherwise, at: [hero.x, hero.y], queue }, began);
      return;
    }
    aiming.value = next;
    if (this.quick.peek() && this.pointer.inside) this.fire(queue, began);
  }

  attack(queue: boolean, began: number): void {
    const hero = this.now(), range = hero ? this.game.facts.heroes[hero.type]?.range ?? 0 : 0;
    this.begin(attacking(range, queue), { kind: "attack_move" }, queue, began);
  }

  cast(ability: AbilityNow, queue: boolean, began: number): void {
    const f = ability.facts;
    if (f?.passive) { this.game.say(`${plain(ability.name)} is passive`); return; }
    if (!ability.level) { this.game.say(`${plain(ability.name)} is not learned yet`); return; }
    this.begin(f ? aimed("cast", ability.slot, ability.name, f, ability.level, queue) : null, { kind: "cast", slot: ability.slot }, queue, began);
  }

  use(item: ItemNow, queue: boolean, began: number): void {
    if (!item.name) { this.game.say("there is nothing in that slot"); return; }
    const f = item.facts;
    this.begin(f ? aimed("use", item.slot, item.name, f, 1, queue) : null, { kind: "use", slot: item.slot }, queue, began);
  }

  /** Carries out the keyboard's click: the aimed order, else a right click. */
  confirm(queue: boolean, began: number): void {
    if (aiming.peek()) this.fire(queue, began);
    else if (this.pointer.inside) this.act(queue, began);
  }

  zoom(factor: number): void { this.camera?.zoomAt(this.camera.width / 2, this.camera.height / 2, factor); }

  drop(item: ItemNow): void {
    aiming.value = { kind: "drop", slot: item.slot, name: `drop ${item.name}`, aim: ["point"], sides: [], range: 0, area: 0, queue: false };
  }

  /** Aims a scan for enemy heroes. */
  scan(): void {
    aiming.value = { kind: "scan", slot: 0, name: "scan", aim: ["point"], sides: [], range: 0, area: this.ofScan("radius"), queue: false };
  }

  /** Returns when the team can scan again, seconds since the horn. */
  scanReady(): number { return moment(this.ofScan("ready")); }

  private ofScan(field: string): number {
    const { steps } = this.game, frame = steps?.last?.frame;
    return steps && frame ? value(steps.header.schema, frame, "scan", this.team, field) : 0;
  }

  learn(ability: AbilityNow, began: number): void {
    this.learning.value = false;
    this.give({ kind: "level", slot: ability.slot }, began);
  }

  /** Runs a button's action. After a click the map gets the focus back; after a key the button keeps it. */
  pressed(event: MouseEvent, act: () => void): void {
    act();
    if (event.detail > 0) this.focus();
  }

  /** Focuses the map. */
  focus(): void { document.querySelector<HTMLElement>("[data-field]")?.focus(); }

  /** Closes the panel above the map. */
  close(): void {
    this.panel.value = "";
    this.focus();
  }

  /** Cancels aiming, else learning, else closes the panel; false if there is nothing to cancel. */
  cancel(): boolean {
    if (aiming.peek()) { aiming.value = null; return true; }
    if (this.learning.peek()) { this.learning.value = false; return true; }
    if (this.panel.peek()) { this.close(); return true; }
    return false;
  }

  /** Moves the cursor to the next visible unit of a side, for play without a mouse. */
  next(enemy: boolean): void {
    const { steps } = this.game, frame = this.sample?.from.frame, camera = this.camera;
    if (!steps || !frame || !camera) return;
    const found: (readonly [number, number, number])[] = [];
    for (const unit of units(steps.header, frame, this.eyes)) {
      if ((unit.team === this.team) === enemy) continue;
      const [x, y] = camera.at(...world(steps.header, [unit.x, unit.y]));
      if (x >= 0 && y >= 0 && x < camera.width && y < camera.height) found.push([x, y, unit.kind === "hero" ? 0 : 1]);
    }
    if (!found.length) { this.game.say(enemy ? "no enemy is on the screen" : "no friend is on the screen"); return; }
    found.sort((a, b) => a[2] - b[2] || a[0] - b[0] || a[1] - b[1]);
    const at = found.findIndex(([x, y]) => Math.hypot(x - this.pointer.x, y - this.pointer.y) < 10);
    const [x, y] = found[(at + 1) % found.length]!;
    this.pointer = { x, y, inside: true };
    this.edge = false;
  }

  /** Moves the cursor by pixels, for play without a mouse. */
  nudge(dx: number, dy: number): void {
    const { camera, pointer } = this;
    if (!camera) return;
    const from = pointer.inside ? pointer : { x: camera.width / 2, y: camera.height / 2 };
    this.pointer = { x: Math.min(Math.max(from.x + dx, 0), camera.width - 1), y: Math.min(Math.max(from.y + dy, 0), camera.height - 1), inside: true };
    this.edge = false;
  }

  /** Pings the position under the cursor. */
  ping(): void {
    const at = this.place();
    if (at) this.game.ping(at);
  }

  /** Returns a unit's position in the shown frame. */
  placeOf(slot: number): Place | null {
    const { steps } = this.game, frame = this.sample?.from.frame;
    const unit = steps && frame ? unitAt(steps.header, frame, slot, -1) : null;
    return unit ? [unit.x, unit.y] : null;
  }
}
