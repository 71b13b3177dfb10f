/** What the capture worklet does with samples, without the browser's audio API. */

import { SAMPLE_RATE, intoInt16 } from "./pcm.js";
import { Resampler } from "./resampler.js";

export class CaptureCore {
  /** While true, silence is sent: the server goes on hearing time pass, and nothing else. */
  muted = false;
  #resampler;
  #waiting;
  #waitingCount = 0;
  #resampled;
  #frame;
  #frameCount = 0;
  #onFrame;

  /**
   * @param {{inputRate: number, outputRate?: number, frameSeconds?: number, largestQuantum?: number}} options
   * @param {(frame: Int16Array, level: number) => void} onFrame Gets each frame, which it may keep.
   */
  constructor({ inputRate, outputRate = SAMPLE_RATE, frameSeconds = 0.02, largestQuantum = 1024 }, onFrame) {
    this.#resampler = new Resampler(inputRate, outputRate);
    this.#waiting = new Float32Array(largestQuantum + this.#resampler.inputsFor(2) + 2);
    this.#resampled = new Float32Array(Math.ceil((this.#waiting.length * outputRate) / inputRate) + 2);
    this.#frame = new Float32Array(Math.round(frameSeconds * outputRate));
    this.#onFrame = onFrame;
  }

  /**
   * Takes one quantum of the microphone's sound.
   * @param {Float32Array} samples
   */
  process(samples) {
    this.#waiting.set(samples, this.#waitingCount);
    const available = this.#waitingCount + samples.length;
    const outputs = this.#resampler.outputsFor(available);
    const inputs = this.#resampler.inputsFor(outputs);
    this.#resampler.process(this.#waiting, this.#resampled, outputs);
    this.#waiting.copyWithin(0, inputs, available);
    this.#waitingCount = available - inputs;
    for (let index = 0; index < outputs; index += 1) this.#add(this.#resampled[index]);
  }

  #add(sample) {
    this.#frame[this.#frameCount] = sample;
    this.#frameCount += 1;
    if (this.#frameCount < this.#frame.length) return;
    this.#frameCount = 0;
    if (this.muted) this.#frame.fill(0);
    const energy = this.#frame.reduce((sum, value) => sum + value * value, 0);
    const integers = new Int16Array(this.#frame.length);
    intoInt16(this.#frame, integers);
    this.#onFrame(integers, Math.sqrt(energy / this.#frame.length));
  }
}
