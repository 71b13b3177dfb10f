/** The spoken answers: they go to the output, can be interrupted, and the server is told how far they were heard. */

import { SAMPLE_RATE, SampleJoiner, fromBase64 } from "../audio/pcm.js";

/** Dispatches `change` when something begins or ends, `sound` with {item, milliseconds} as sound arrives, and `cut` with {item}. */
export class Answers extends EventTarget {
  #output;
  #send;
  #active = null;
  #item = null;
  #joiner = new SampleJoiner();
  /** Responses that nobody wants to hear any more. */
  #dropped = new Set();
  /** Answers that are played or wait to be. */
  #pending = new Set();

  /**
   * @param {import("../audio/output.js").AudioOutput} output
   * @param {(event: object) => boolean} send To the server.
   */
  constructor(output, send) {
    super();
    this.#output = output;
    this.#send = send;
    output.addEventListener("finished", ({ detail }) => this.#settle(detail.segment));
    output.addEventListener("flushed", ({ detail }) => this.#flushed(detail));
  }

  /** Whether the server is making an answer. */
  get active() {
    return this.#active !== null;
  }

  /** Whether an answer is heard, or about to be. */
  get audible() {
    return this.#pending.size > 0;
  }

  /** Follows one event of the server. @param {{type: string}} event */
  follow(event) {
    if (event.type === "response.created") this.#begin(event.response);
    else if (event.type === "response.output_audio.delta") this.#sound(event);
    else if (event.type === "response.output_audio.done") this.#soundEnded(event);
    else if (event.type === "response.done") this.#end(event.response);
  }

  /** Silences what is heard. The server has stopped by itself, or is told to. @param {{tell: boolean}} options */
  interrupt({ tell }) {
    if (this.#active !== null) {
      this.#dropped.add(this.#active);
      if (tell) this.#send({ type: "response.cancel", response_id: this.#active });
    }
    this.#silence();
  }

  /** Forgets everything, as at the end of a session. */
  reset() {
    this.#active = null;
    this.#silence();
    for (const item of this.#pending) this.dispatchEvent(new CustomEvent("cut", { detail: { item } }));
    this.#pending.clear();
  }

  #silence() {
    this.#item = null;
    if (this.#pending.size > 0) this.#output.flush();
  }

  #begin(response) {
    this.#active = response.id;
    this.#changed();
  }

  #sound({ response_id: response, item_id: item, delta }) {
    if (this.#dropped.has(response)) return;
    if (this.#item !== item) {
      this.#item = item;
      this.#joiner = new SampleJoiner();
      this.#pending.add(item);
      this.#output.begin(item);
      this.#changed();
    }
    const samples = this.#joiner.join(fromBase64(delta));
    const milliseconds = (1000 * samples.length) / SAMPLE_RATE;
    this.#output.write(samples);
    this.dispatchEvent(new CustomEvent("sound", { detail: { item, milliseconds } }));
  }

  #soundEnded({ item_id: item }) {
    if (this.#item !== item) return;
    this.#item = null;
    if (this.#pending.has(item)) this.#output.end();
  }

  #end(response) {
    if (this.#active === response.id) this.#active = null;
    const interrupted = response.status === "cancelled" && response.status_details?.reason === "turn_detected";
    // Nothing of a response follows its end.
    const dropped = this.#dropped.delete(response.id);
    if (interrupted && !dropped) this.#silence();
    this.#changed();
  }

  /** The output says how much of an answer was played when it was silenced; the server cuts its memory to that. */
  #flushed({ segment, seconds }) {
    if (!this.#pending.has(segment)) return;
    if (this.#item === segment) this.#item = null;
    const heard = Math.max(0, seconds - this.#output.latencySeconds);
    const end = Math.floor(1000 * heard);
    this.#send({ type: "conversation.item.truncate", item_id: segment, content_index: 0, audio_end_ms: end });
    this.dispatchEvent(new CustomEvent("cut", { detail: { item: segment } }));
    this.#settle(segment);
  }

  #settle(segment) {
    if (this.#pending.delete(segment)) this.#changed();
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}
