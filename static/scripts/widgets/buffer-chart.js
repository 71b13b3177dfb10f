/** How much sound was buffered over the last seconds. */

import { milliseconds } from "../dom.js";
import { BUFFER_SAMPLES } from "../measure/recorder.js";

export class BufferChart {
  #canvas;

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.#canvas = canvas;
  }

  /** @param {number[]} buffered Milliseconds, oldest first. */
  show(buffered) {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    if (width === 0) return;
    const scale = devicePixelRatio || 1;
    this.#canvas.width = Math.round(width * scale);
    this.#canvas.height = Math.round(height * scale);
    const context = this.#canvas.getContext("2d");
    context.scale(scale, scale);
    this.#paint(context, width, height, buffered);
    const now = buffered.at(-1);
    const label = now === undefined ? "Nothing buffered yet" : `${milliseconds(now)} buffered now, at most ${milliseconds(Math.max(...buffered))}`;
    this.#canvas.setAttribute("aria-label", label);
  }

  #paint(context, width, height, buffered) {
    const style = getComputedStyle(this.#canvas);
    const top = roundUp(Math.max(500, ...buffered));
    const y = (value) => height - 1 - (value / top) * (height - 22);
    context.font = `12px ${style.fontFamily}`;
    for (const mark of [0, top / 2, top]) {
      context.fillStyle = style.getPropertyValue("--line");
      context.fillRect(0, y(mark), width, 1);
      context.fillStyle = style.getPropertyValue("--muted");
      if (mark > 0) context.fillText(milliseconds(mark), 0, y(mark) - 4);
    }
    if (buffered.length < 2) return;
    const x = (index) => width - ((buffered.length - 1 - index) * width) / BUFFER_SAMPLES;
    context.beginPath();
    buffered.forEach((value, index) => context.lineTo(x(index), y(value)));
    context.strokeStyle = style.getPropertyValue("--them");
    context.lineWidth = 2;
    context.lineJoin = "round";
    context.stroke();
    context.lineTo(width, height);
    context.lineTo(x(0), height);
    context.globalAlpha = 0.14;
    context.fillStyle = style.getPropertyValue("--them");
    context.fill();
    context.globalAlpha = 1;
  }
}

function roundUp(value) {
  const magnitude = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * magnitude).find((candidate) => candidate >= value);
}
