// Playback position in steps: advances with time at a speed, or stays at the live edge.
import { signal } from "@preact/signals";
import type { Film } from "./film.ts";

export const SPEEDS = [0.25, 0.5, 1, 2, 4, 8] as const;

export class Playback {
  readonly position = signal(0);
  readonly playing = signal(true);
  readonly speed = signal<number>(1);
  /** Whether playback follows the newest step of a live game. */
  readonly atEdge = signal(false);
  private readonly film: Film;
  private readonly live: boolean;
  constructor(film: Film, live: boolean) {
    this.film = film;
    this.live = live;
    this.atEdge.value = live;
  }

  private get last(): number { return Math.max(this.film.steps.peek() - 1, 0); }

  /** Advances the position by some milliseconds. */
  pass(ms: number): void {
    if (!this.playing.peek()) return;
    const rate = this.film.header.peek()?.steps_per_second ?? 7.5;
    let next = this.position.peek() + ms / 1000 * rate * this.speed.peek();
    if (this.live && this.atEdge.peek()) {
      // Stay one chunk behind the newest, so that the next one is ready; play faster when further behind.
      const behind = this.last - next, wanted = 4 * rate;
      if (behind > 6 * wanted) next = this.last - wanted;
      else if (behind > wanted) next += ms / 1000 * rate * Math.min((behind - wanted) / wanted, 6);
    }
    this.position.value = Math.min(next, this.last);
  }

  /** Moves to a step, and stops following a live game. */
  seek(step: number): void {
    this.atEdge.value = false;
    this.position.value = Math.min(Math.max(step, 0), this.last);
  }

  /** Moves to the newest step, and follows a live game. */
  toEdge(): void {
    this.atEdge.value = this.live;
    this.playing.value = true;
    this.speed.value = 1;
    this.position.value = Math.max(this.last - 30, 0);
  }
}
