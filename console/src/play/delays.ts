// Input latency of the last hundred orders: from the key press to the response, and to the frame that shows it.
const KEPT = 100;

export class Delays {
  private readonly values: number[] = [];

  add(ms: number): void {
    this.values.push(ms);
    if (this.values.length > KEPT) this.values.shift();
  }

  /** Returns a quantile of the values, NaN without any. */
  quantile(share: number): number {
    const sorted = [...this.values].sort((a, b) => a - b);
    return sorted[Math.min(Math.ceil(sorted.length * share), sorted.length) - 1] ?? NaN;
  }
}
