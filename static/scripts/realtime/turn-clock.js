/** Measures each answer of a conversation, from the end of the person's turn. */

import { readStages } from "../api/stage-use.js";
import { fromBase64 } from "../audio/pcm.js";

export class TurnClock {
  #recorder;
  #clock;
  #readStages;
  #stages = null;
  #endedAt = null;
  #createdAt = null;
  #utterances = new Map();
  #texts = new Map();

  /**
   * @param {import("../measure/recorder.js").Recorder} recorder
   * @param {{readStages?: typeof readStages, clock?: () => number}} [options] The clock gives milliseconds.
   */
  constructor(recorder, options = {}) {
    this.#recorder = recorder;
    this.#readStages = options.readStages ?? readStages;
    this.#clock = options.clock ?? (() => performance.now());
  }

  /** The person's turn has ended. */
  turnEnded() {
    this.#endedAt = this.#clock();
  }

  /** Follows one event of the server. @param {{type: string}} event */
  follow(event) {
    const act = this.#acts[event.type];
    if (act === undefined) return;
    act(event);
    this.#recorder.changed();
  }

  #acts = {
    "input_audio_buffer.speech_stopped": () => this.turnEnded(),
    "response.created": () => {
      this.#stages = this.#readStages();
      this.#createdAt = this.#clock();
    },
    "response.output_item.added": ({ item, response_id }) => this.#begin(item, response_id),
    "response.output_audio_transcript.delta": ({ item_id, delta }) => this.#text(item_id, delta),
    "response.output_audio.delta": ({ item_id, delta }) => this.#sound(item_id, delta),
    "response.done": ({ response }) => this.#end(response),
  };

  #begin(item, response) {
    if (item.type !== "message") return;
    const created = this.#createdAt ?? this.#clock();
    const utterance = this.#recorder.begin(item.id, "talk", "", this.#endedAt ?? created);
    utterance.timings = [{ name: "ear", milliseconds: created - utterance.askedAt }];
    this.#utterances.set(response, utterance);
    this.#endedAt = null;
  }

  #text(item, delta) {
    const utterance = this.#recorder.find(item);
    if (utterance === null) return;
    if (!this.#texts.has(item)) {
      this.#texts.set(item, this.#clock());
      this.#span(utterance, "thinker", this.#createdAt);
    }
    utterance.text += delta;
  }

  #sound(item, delta) {
    const utterance = this.#recorder.find(item);
    if (utterance === null) return;
    if (utterance.firstSoundAt === null) this.#span(utterance, "talker", this.#texts.get(item) ?? this.#createdAt);
    utterance.arrived(this.#clock(), fromBase64(delta).length / 48_000);
  }

  #end(response) {
    const utterance = this.#utterances.get(response.id);
    this.#utterances.delete(response.id);
    if (utterance === undefined) return;
    this.#texts.delete(utterance.name);
    if (response.status === "failed") utterance.ended(this.#clock(), "failed");
    this.#noteStages(utterance);
  }

  async #noteStages(utterance) {
    utterance.stages = await this.#stages.until();
    this.#recorder.changed();
  }

  #span(utterance, name, since) {
    utterance.timings.push({ name, milliseconds: this.#clock() - (since ?? this.#clock()) });
  }
}
