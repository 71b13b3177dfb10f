/** A band of sound that flows from its middle outward: the person's to the left, Antiphon's to the right. */

const BAR = 3;
const PITCH = 6;
const HISTORY = 400;

export class Waveform {
  #canvas;
  #middle;
  #bars = [];
  #current = { you: 0, them: 0 };
  #colours = {};
  #shown = false;
  #frame = 0;
  #lastBar = 0;

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {{middle?: number}} [options] Pixels that are kept free in the middle; without it, Antiphon's sound alone
   *   flows from the right to the left.
   */
  constructor(canvas, { middle } = {}) {
    this.#canvas = canvas;
    this.#middle = middle;
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
    context.fillStyle = this.#colours.line;
    context.fillRect(0, height / 2 - 0.5, width, 1);
    if (this.#middle === undefined) {
      this.#paintSide(context, "them", { begin: width, direction: -1, length: width, height });
      return;
    }
    const length = (width - this.#middle) / 2;
    this.#paintSide(context, "you", { begin: length, direction: -1, length, height });
    this.#paintSide(context, "them", { begin: width - length, direction: 1, length, height });
  }

  /** Paints one side's past, the newest at its beginning. */
  #paintSide(context, side, { begin, direction, length, height }) {
    context.fillStyle = this.#colours[side];
    for (let age = 0; age < this.#bars.length; age += 1) {
      const distance = age * PITCH + BAR;
      if (distance > length) break;
      const size = heightOf(this.#bars[this.#bars.length - 1 - age][side]) * height;
      if (size < 1) continue;
      context.globalAlpha = Math.max(0.1, 1 - distance / length);
      context.beginPath();
      context.roundRect(begin + direction * distance - BAR / 2, (height - size) / 2, BAR, size, BAR / 2);
      context.fill();
    }
    context.globalAlpha = 1;
  }
}

/** The root mean square of very loud speech. */
const LOUD = 0.35;

/** Loudness grows with the 0.6th power of the pressure (Stevens, "The measurement of loudness", 1955). */
function heightOf(level) {
  return Math.min(1, (Math.max(0, level) / LOUD) ** 0.6);
}
