/**
 * What the output worklet does with samples, without the browser's audio API.
 *
 * Sound comes in as segments, one for each utterance, and goes out in quanta at the device's rate. Playing
 * begins when enough is buffered. A quantum that would run dry is faded out before it does, and what could
 * not be faded in time is never played: nothing clicks. Flushing is done within one quantum.
 */

import { SAMPLE_RATE } from "./pcm.js";
import { Resampler } from "./resampler.js";
import { RingBuffer } from "./ring-buffer.js";

const DEFAULTS = {
  inputRate: SAMPLE_RATE,
  capacitySeconds: 120,
  startSeconds: 0.1,
  longestStartSeconds: 0.6,
  fadeSeconds: 0.005,
  largestQuantum: 1024,
};

/** Frames that a flush takes to fade: one render quantum. */
const FLUSH_FRAMES = 128;

/** How much more is collected after an underrun, and how much less after an utterance without one. */
const CAUTION = 1.5;

/** @typedef {{type: string, segment: string, seconds: number}} PlayerEvent */

export class PlayerCore {
  /** Events since they were last taken. @type {PlayerEvent[]} */
  events = [];
  #options;
  #ring;
  #resampler;
  #scratch;
  #tail;
  #startSamples;
  #state = "idle";
  #gain = 0;
  #gainStep;
  #farewell = new Float32Array(FLUSH_FRAMES);
  #farewellWaits = false;
  #segments = [];
  #received = 0;
  #written = 0;
  #read = 0;
  #underruns = 0;
  #silentFrames = 0;
  #energy = 0;
  #energyFrames = 0;

  /**
   * @param {{outputRate: number, inputRate?: number, capacitySeconds?: number, startSeconds?: number,
   *   longestStartSeconds?: number, fadeSeconds?: number, largestQuantum?: number}} options
   */
  constructor(options) {
    this.#options = { ...DEFAULTS, ...options };
    const { inputRate, outputRate, capacitySeconds, startSeconds, fadeSeconds } = this.#options;
    this.#resampler = new Resampler(inputRate, outputRate);
    this.#ring = new RingBuffer(Math.ceil(capacitySeconds * inputRate));
    this.#scratch = new Float32Array(Math.ceil((this.#options.largestQuantum * inputRate) / outputRate) + 2);
    this.#tail = new Float32Array(this.#resampler.delay);
    this.#startSamples = startSeconds * inputRate;
    this.#gainStep = 1 / Math.max(1, Math.round(fadeSeconds * outputRate));
  }

  /** "idle", "filling" or "playing". */
  get state() {
    return this.#state;
  }

  /** How many samples of a write would be taken. */
  get room() {
    return Math.max(0, this.#ring.room - this.#tail.length);
  }

  /**
   * Begins an utterance; what is written from now on belongs to it.
   * @param {string} segment Its name.
   */
  begin(segment) {
    this.end();
    this.#segments.push({ name: segment, start: this.#written, end: null, last: null, started: false, ranDry: false });
    if (this.#state === "idle") this.#state = "filling";
  }

  /**
   * Takes sound of the utterance that was begun last.
   * @param {Float32Array} samples
   * @returns {number} How many samples were taken; less than all when the buffer is full.
   */
  write(samples) {
    this.#received += samples.length;
    if (this.#open === null) return 0;
    const count = this.#ring.write(samples.length > this.room ? samples.subarray(0, this.room) : samples);
    this.#written += count;
    return count;
  }

  /** The utterance is complete: what waits is played to its end, however little it is. */
  end() {
    const open = this.#open;
    if (open === null) return;
    open.end = this.#written;
    this.#written += this.#ring.write(this.#tail);
    open.last = this.#written;
  }

  /** Makes everything silent within the next quantum and forgets it. What is begun afterwards is played. */
  flush() {
    const playing = this.#state === "playing";
    const inputs = playing ? (this.#current.last ?? this.#read + this.#ring.length) - this.#read : 0;
    const count = Math.min(FLUSH_FRAMES, this.#resampler.outputsFor(inputs));
    this.#resample(this.#farewell, count);
    this.#applyGain(this.#farewell, count, -1 / Math.max(1, count));
    this.#farewell.fill(0, count);
    this.#farewellWaits = count > 0;
    for (const segment of this.#segments) this.#note("flushed", segment);
    this.#settle();
  }

  /**
   * Plays one quantum.
   * @param {Float32Array} output Filled completely.
   */
  render(output) {
    if (this.#farewellWaits) {
      this.#farewellWaits = false;
      output.fill(0);
      output.set(this.#farewell.subarray(0, output.length));
    } else {
      this.#startIfReady();
      if (this.#state === "playing") this.#renderSound(output);
      else this.#renderSilence(output);
    }
    for (let index = 0; index < output.length; index += 1) this.#energy += output[index] * output[index];
    this.#energyFrames += output.length;
  }

  /** What a listener wants to know now; the level is that since the last report. */
  report() {
    const current = this.#current;
    const level = this.#energyFrames === 0 ? 0 : Math.sqrt(this.#energy / this.#energyFrames);
    this.#energy = 0;
    this.#energyFrames = 0;
    return {
      state: this.#state,
      segment: current === null ? null : current.name,
      seconds: current === null ? 0 : this.#secondsOf(current),
      bufferedSeconds: this.#ring.length / this.#options.inputRate,
      startSeconds: this.#startSamples / this.#options.inputRate,
      room: this.room,
      received: this.#received,
      underruns: this.#underruns,
      silentSeconds: this.#silentFrames / this.#options.outputRate,
      level,
    };
  }

  get #open() {
    const last = this.#segments.at(-1);
    return last !== undefined && last.end === null ? last : null;
  }

  /** The utterance whose sound is being played. */
  get #current() {
    return this.#segments[0] ?? null;
  }

  #secondsOf(segment) {
    const heard = Math.max(0, this.#read - this.#resampler.delay - segment.start);
    const length = segment.end === null ? heard : segment.end - segment.start;
    return Math.min(heard, length) / this.#options.inputRate;
  }

  #startIfReady() {
    if (this.#state !== "filling") return;
    const complete = this.#current.end !== null;
    if (complete || this.#ring.length >= this.#startSamples || this.room === 0) this.#state = "playing";
  }

  #renderSilence(output) {
    output.fill(0);
    // Silence in the middle of an utterance is what an underrun costs.
    if (this.#state === "filling" && this.#current?.started) this.#silentFrames += output.length;
  }

  #renderSound(output) {
    const complete = this.#current.end !== null;
    const inputs = complete ? this.#current.last - this.#read : this.#ring.length;
    const remaining = this.#resampler.outputsFor(inputs);
    const fadeFrames = Math.ceil(this.#gain / this.#gainStep);
    const starving = !complete && remaining < output.length + Math.max(fadeFrames, 1 / this.#gainStep);
    const count = Math.min(output.length, remaining, starving ? fadeFrames : Infinity);
    this.#resample(output, count);
    this.#applyGain(output, count, starving ? -this.#gainStep : this.#gainStep);
    output.fill(0, count);
    this.#noteStart();
    if (starving && this.#gain === 0) this.#runDry();
    if (complete && count === remaining) this.#finish();
  }

  #resample(output, count) {
    const inputs = this.#resampler.inputsFor(count);
    this.#ring.read(this.#scratch, inputs);
    this.#resampler.process(this.#scratch, output, count);
    this.#read += inputs;
  }

  #applyGain(output, count, step) {
    let gain = this.#gain;
    for (let index = 0; index < count; index += 1) {
      gain = Math.max(0, Math.min(1, gain + step));
      output[index] *= gain;
    }
    this.#gain = gain < 1e-6 ? 0 : gain;
  }

  /** The buffer ran dry in the middle of an utterance: more is collected before it goes on. */
  #runDry() {
    this.#underruns += 1;
    this.#state = "filling";
    const longest = this.#options.longestStartSeconds * this.#options.inputRate;
    this.#startSamples = Math.min(longest, CAUTION * this.#startSamples);
    this.#current.ranDry = true;
    this.#note("underrun", this.#current);
  }

  #noteStart() {
    const current = this.#current;
    if (current.started || this.#read - this.#resampler.delay <= current.start) return;
    current.started = true;
    this.#note("started", current);
  }

  /** The utterance that was playing is over. */
  #finish() {
    const current = this.#segments.shift();
    const rest = current.last - this.#read;
    this.#read += this.#ring.read(this.#scratch, rest);
    this.#note("finished", current);
    // A bad moment is forgotten again, step by step: waiting longer than needed costs the listener.
    const least = this.#options.startSeconds * this.#options.inputRate;
    if (!current.ranDry) this.#startSamples = Math.max(least, this.#startSamples / CAUTION);
    this.#resampler.reset();
    this.#gain = 0;
    this.#state = "filling";
    if (this.#segments.length === 0) this.#settle();
  }

  /** Nothing is left to play. */
  #settle() {
    this.#ring.clear();
    this.#resampler.reset();
    this.#segments = [];
    this.#written = 0;
    this.#read = 0;
    this.#gain = 0;
    this.#state = "idle";
  }

  #note(type, segment) {
    this.events.push({ type, segment: segment.name, seconds: this.#secondsOf(segment) });
  }
}
