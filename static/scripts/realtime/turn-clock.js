/** Measures each answer of a conversation, from the end of the person's turn. */

import { BYTES_PER_SECOND, fromBase64 } from "../audio/pcm.js";

export class TurnClock {
  #recorder;
  #clock;
  #readTimeline;
  #endedAt = null;
  #spoken = false;
  #createdAt = null;
  #utterances = new Map();

  /**
   * @param {import("../measure/recorder.js").Recorder} recorder
   * @param {(id: string) => Promise<import("../api/timeline.js").Timeline | null>} readTimeline Of a response.
   * @param {() => number} [clock] In milliseconds.
   */
  constructor(recorder, readTimeline, clock = () => performance.now()) {
    this.#recorder = recorder;
    this.#readTimeline = readTimeline;
    this.#clock = clock;
  }

  /** The person's turn has ended. @param {{spoken: boolean}} how */
  turnEnded({ spoken }) {
    this.#endedAt = this.#clock();
    this.#spoken = spoken;
  }

  /** Follows one event of the server. @param {{type: string}} event */
  follow(event) {
    const act = this.#acts[event.type];
    if (act === undefined) return;
    act(event);
    this.#recorder.changed();
  }

  #acts = {
    "input_audio_buffer.speech_stopped": () => this.turnEnded({ spoken: true }),
    "response.created": () => {
      this.#createdAt = this.#clock();
    },
    "response.output_item.added": ({ item, response_id }) => this.#begin(item, response_id),
    "response.output_audio_transcript.delta": ({ item_id, delta }) => this.#text(item_id, delta),
    "response.output_audio.delta": ({ item_id, delta, response_id }) => this.#sound(item_id, delta, response_id),
    "response.done": ({ response }) => this.#end(response),
  };

  #begin(item, response) {
    if (item.type !== "message") return;
    const asked = this.#endedAt ?? this.#createdAt ?? this.#clock();
    const utterance = this.#recorder.begin(item.id, "talk", "", asked);
    // Between the end of a spoken turn and the Thinker's request lies the work of the server's ear.
    if (this.#spoken) utterance.before = "ear";
    this.#utterances.set(response, utterance);
    this.#endedAt = null;
  }

  #text(item, delta) {
    const utterance = this.#recorder.find(item);
    if (utterance !== null) utterance.text += delta;
  }

  #sound(item, delta, response) {
    const utterance = this.#recorder.find(item);
    if (utterance === null) return;
    if (utterance.firstSoundAt === null) this.#noteTimeline(utterance, response);
    utterance.arrived(this.#clock(), fromBase64(delta).length / BYTES_PER_SECOND);
  }

  #end(response) {
    const utterance = this.#utterances.get(response.id);
    this.#utterances.delete(response.id);
    if (utterance === undefined) return;
    if (response.status === "failed") utterance.ended(this.#clock(), "failed");
    this.#noteTimeline(utterance, response.id);
  }

  /** Asks the server where its time went: at the first sound, and at the end. */
  async #noteTimeline(utterance, response) {
    utterance.served = (await this.#readTimeline(response)) ?? utterance.served;
    this.#recorder.changed();
  }
}
