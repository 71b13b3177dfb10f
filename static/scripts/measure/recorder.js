/** Keeps what was measured about the last utterances, and tells who wants to know. */

import { Utterance } from "./utterance.js";

const KEPT = 20;
/** How often in a row the buffer is noted at most, and what a chart of it has room for. */
export const BUFFER_SAMPLES = 600;

/** Dispatches `change` when an utterance begins, ends or is measured. */
export class Recorder extends EventTarget {
  /** Newest first. @type {Utterance[]} */
  utterances = [];
  /** Buffered milliseconds over time, oldest first. @type {number[]} */
  buffered = [];
  #clock;

  /** @param {() => number} clock Milliseconds. */
  constructor(clock = () => performance.now()) {
    super();
    this.#clock = clock;
  }

  /**
   * Begins an utterance.
   * @param {string} name
   * @param {"speak" | "talk"} kind
   * @param {string} text
   * @param {number} [askedAt]
   * @returns {Utterance}
   */
  begin(name, kind, text, askedAt = this.#clock()) {
    const utterance = new Utterance(name, kind, text, askedAt);
    this.utterances = [utterance, ...this.utterances].slice(0, KEPT);
    this.changed();
    return utterance;
  }

  /** Finds an utterance. @param {string} name */
  find(name) {
    return this.utterances.find((utterance) => utterance.name === name) ?? null;
  }

  /**
   * Listens to what is played.
   * @param {import("../audio/output.js").AudioOutput} output
   */
  follow(output) {
    const on = (type, act) =>
      output.addEventListener(type, ({ detail }) => {
        const utterance = this.find(detail.segment);
        if (utterance === null) return;
        act(utterance);
        this.changed();
      });
    on("started", (utterance) => utterance.played(this.#clock() + 1000 * output.latencySeconds));
    on("underrun", (utterance) => {
      utterance.underruns += 1;
    });
    on("finished", (utterance) => utterance.ended(this.#clock(), "finished"));
    on("flushed", (utterance) => utterance.ended(this.#clock(), "interrupted"));
    output.addEventListener("report", () => this.#noteBuffer(output));
  }

  /** Tells everyone that something was measured. */
  changed() {
    this.dispatchEvent(new Event("change"));
  }

  #noteBuffer(output) {
    if (output.report.state === "idle" && (this.buffered.at(-1) ?? 0) === 0) return;
    this.buffered.push(1000 * output.bufferedSeconds);
    if (this.buffered.length > BUFFER_SAMPLES) this.buffered.shift();
  }
}
