/** A band of sound: the person's level above the line, Antiphon's below it, flowing toward the past. */

const BAR = 3;
const PITCH = 6;
const HISTORY = 400;

export class Waveform {
  #canvas;
  #sides;
  #bars = [];
  #current = { you: 0, them: 0 };
  #colours = {};
  #shown = false;
  #frame = 0;
  #lastBar = 0;

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {{sides?: ("you" | "them")[]}} [options]
   */
  constructor(canvas, { sides = ["you", "them"] } = {}) {
    this.#canvas = canvas;
    this.#sides = sides;
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  /**
   * Takes the loudness of a moment in.
   * @param {"you" | "them"} side
   * @param {number} level Root mean square.
   */
  note(side, level) {
    this.#current[side] = Math.max(this.#current[side], level);
  }

  /** Begins to move. */
  start() {
    if (this.#shown) return;
    this.#shown = true;
    const interval = matchMedia("(prefers-reduced-motion: reduce)").matches ? 400 : 45;
    const step = (now) => {
      if (!this.#shown) return;
      if (now - this.#lastBar >= interval) {
        this.#lastBar = now;
        this.#bars.push(this.#current);
        if (this.#bars.length > HISTORY) this.#bars.shift();
        this.#current = { you: 0, them: 0 };
        this.draw();
      }
      this.#frame = requestAnimationFrame(step);
    };
    this.#frame = requestAnimationFrame(step);
  }

  /** Stands still. */
  stop() {
    this.#shown = false;
    cancelAnimationFrame(this.#frame);
  }

  /** Forgets the past. */
  clear() {
    this.#bars = [];
    this.draw();
  }

  /** Paints the band. */
  draw() {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    if (width === 0) return;
    const scale = devicePixelRatio || 1;
    if (this.#canvas.width !== Math.round(width * scale)) this.#canvas.width = Math.round(width * scale);
    if (this.#canvas.height !== Math.round(height * scale)) this.#canvas.height = Math.round(height * scale);
    const context = this.#canvas.getContext("2d");
    const style = getComputedStyle(this.#canvas);
    this.#colours = { you: style.getPropertyValue("--you"), them: style.getPropertyValue("--them"), line: style.getPropertyValue("--line") };
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    this.#paint(context, width, height);
  }

  #paint(context, width, height) {
    const both = this.#sides.length > 1;
    const middle = both ? height / 2 : height;
    context.fillStyle = this.#colours.line;
    context.fillRect(0, both ? middle - 0.5 : height - 1, width, 1);
    const reach = both ? middle - 2 : height - 2;
    for (let age = 0; age < this.#bars.length; age += 1) {
      const x = width - (age + 1) * PITCH;
      if (x < -BAR) break;
      const bar = this.#bars[this.#bars.length - 1 - age];
      context.globalAlpha = Math.max(0.12, 1 - (age * PITCH) / width);
      for (const side of this.#sides) {
        const size = heightOf(bar[side]) * reach;
        if (size < 1) continue;
        context.fillStyle = this.#colours[side];
        context.beginPath();
        context.roundRect(x, side === "you" || !both ? middle - 1 - size : middle + 1, BAR, size, BAR / 2);
        context.fill();
      }
    }
    context.globalAlpha = 1;
  }
}

/** Loudness as the ear sees it: 50 dB from nothing to full. */
function heightOf(level) {
  if (level <= 0) return 0;
  return Math.max(0, Math.min(1, 1 + (20 * Math.log10(level * 2.5)) / 42));
}
