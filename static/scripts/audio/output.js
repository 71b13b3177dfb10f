/** The main thread's side of the output worklet: what is to be played goes in, what was heard comes out. */

import { SAMPLE_RATE } from "./pcm.js";
import { WriteQueue } from "./write-queue.js";

const CAPACITY_SECONDS = 120;

/**
 * Dispatches `started`, `finished`, `underrun` and `flushed` with `detail` {segment, seconds}, and `report`
 * about fifty times a second.
 */
export class AudioOutput extends EventTarget {
  #context;
  #node;
  #queue;
  #report = { state: "idle", segment: null, seconds: 0, bufferedSeconds: 0, underruns: 0, silentSeconds: 0, level: 0 };
  #reportTime = 0;

  /**
   * Loads the worklet into a context and connects it.
   * @param {AudioContext} context
   * @returns {Promise<AudioOutput>}
   */
  static async create(context) {
    await context.audioWorklet.addModule(new URL("./player-worklet.js", import.meta.url));
    return new AudioOutput(context);
  }

  /** @param {AudioContext} context One that has the worklet's module. */
  constructor(context) {
    super();
    this.#context = context;
    this.#node = new AudioWorkletNode(context, "antiphon-player", {
      numberOfInputs: 0,
      outputChannelCount: [1],
      processorOptions: { capacitySeconds: CAPACITY_SECONDS, inputRate: SAMPLE_RATE },
    });
    this.#node.connect(context.destination);
    this.#queue = new WriteQueue(CAPACITY_SECONDS * SAMPLE_RATE, (message, transfer) =>
      this.#node.port.postMessage(message, transfer),
    );
    this.#node.port.onmessage = ({ data }) => this.#receive(data);
    this.#node.onprocessorerror = () => this.dispatchEvent(new Event("broken"));
  }

  /** The last report of the worklet. */
  get report() {
    return this.#report;
  }

  /** Seconds of sound that wait to be played. */
  get bufferedSeconds() {
    return this.#report.bufferedSeconds + this.#queue.waiting / SAMPLE_RATE;
  }

  /** Begins an utterance. @param {string} segment Its name. */
  begin(segment) {
    this.#queue.send({ command: "begin", segment });
  }

  /** Plays samples of the utterance that was begun last. @param {Int16Array} samples */
  write(samples) {
    if (samples.length > 0) this.#queue.write(samples);
  }

  /** The utterance is complete. */
  end() {
    this.#queue.send({ command: "end" });
  }

  /** Silences everything at once and forgets it. */
  flush() {
    this.#queue.clear();
    this.#node.port.postMessage({ command: "flush" });
  }

  /** Waits until the worklet has taken everything: how a producer is held back. */
  async room() {
    while (this.#queue.waiting > 0) {
      await new Promise((resolve) => this.addEventListener("report", resolve, { once: true }));
    }
  }

  /**
   * How much of an utterance has reached the ear: what was played less what is under way in the device.
   * @param {string} segment
   * @returns {number} Seconds; zero if another is being played.
   */
  heardSeconds(segment) {
    const { segment: current, seconds, state } = this.#report;
    if (current !== segment) return 0;
    const passed = state === "playing" ? Math.min(0.1, Math.max(0, this.#context.currentTime - this.#reportTime)) : 0;
    return Math.max(0, seconds + passed - this.latencySeconds);
  }

  /** How long sound takes from the worklet to the ear, as far as the browser knows. */
  get latencySeconds() {
    return this.#context.outputLatency || this.#context.baseLatency || 0;
  }

  #receive({ events, report, time }) {
    this.#report = report;
    this.#reportTime = time;
    this.#queue.setRoom(report.room, report.received);
    for (const { type, segment, seconds } of events) {
      this.dispatchEvent(new CustomEvent(type, { detail: { segment, seconds } }));
    }
    this.dispatchEvent(new CustomEvent("report", { detail: report }));
  }
}
