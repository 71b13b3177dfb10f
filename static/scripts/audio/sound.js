/** The page's one AudioContext. It is made in a user's gesture, as browsers demand. */

import { AudioOutput } from "./output.js";

/** Dispatches `open` when the output works, and `statechange` when the system wakes or silences it. */
export class Sound extends EventTarget {
  #context = null;
  #output = null;
  #opening = null;

  /** The context; null before the first gesture. @returns {AudioContext | null} */
  get context() {
    return this.#context;
  }

  /** The output; null before it was opened. @returns {AudioOutput | null} */
  get output() {
    return this.#output;
  }

  /**
   * Opens the output, or wakes it. Must be called in a user's gesture, before anything is awaited.
   * @returns {Promise<AudioOutput>}
   */
  async open() {
    if (this.#context === null) {
      this.#context = new AudioContext({ latencyHint: "interactive" });
      this.#context.addEventListener("statechange", () => this.dispatchEvent(new Event("statechange")));
      this.#opening = AudioOutput.create(this.#context);
    }
    const resumed = this.#context.resume();
    this.#output = await this.#opening;
    await resumed;
    this.dispatchEvent(new Event("open"));
    return this.#output;
  }

  /** Whether the system or the browser silenced the page, as on a phone call. */
  get interrupted() {
    return this.#context !== null && this.#context.state !== "running" && this.#context.state !== "closed";
  }
}
