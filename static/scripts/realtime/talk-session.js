/** One conversation: the microphone and the text box on one side, the server on the other, the output for both. */

import { fetchTimeline } from "../api/timeline.js";
import { toBase64 } from "../audio/pcm.js";
import { Answers } from "./answers.js";
import { Connection } from "./connection.js";
import { sessionOf } from "./session-settings.js";
import { Transcript } from "./transcript.js";
import { TurnClock } from "./turn-clock.js";

/** A network that has not taken this much gets no more of the microphone; it would only come later still. */
const MOST_WAITING_BYTES = 512 * 1024;

/** A network that takes nothing for this long leads nowhere, in milliseconds. */
const LONGEST_STALL = 5000;

/** Errors that only say that something was over already. */
const BENIGN = new Set(["response_cancel_not_active", "item_truncate_invalid_item_id", "input_audio_buffer_commit_empty"]);

/** What a person has to be told of an event that no turn of the conversation shows; null if nothing. */
function problemOf(event, turn) {
  if (event.type === "error" && !BENIGN.has(event.error.code)) return event.error.message;
  const failed = event.type === "response.done" && event.response.status === "failed" && turn === null;
  return failed ? (event.response.status_details?.error?.message ?? "The answer failed.") : null;
}

/** @typedef {"connecting" | "reconnecting" | "offline" | "listening" | "hearing" | "thinking" | "speaking" | "ended"} TalkState */

/**
 * Dispatches `state` with {state}, `turn` with the turn that changed, `sound` with {item, milliseconds}, `cut` with
 * {item}, `struck` with {item, heard}, `retold` when a new session took over from a lost one, `problem` with {message} and `ended` with {message}.
 */
export class TalkSession extends EventTarget {
  transcript = new Transcript();
  #connection;
  #answers;
  #clock;
  #settings;
  #state = "connecting";
  #hearing = false;
  #waiting = false;
  #listens = false;
  #known = false;
  #queue = [];
  #stalledSince = null;

  /**
   * @param {URL} address Of `/v1/realtime`.
   * @param {{output: import("../audio/output.js").AudioOutput, recorder: import("../measure/recorder.js").Recorder,
   *   settings: import("./session-settings.js").TalkSettings, key?: string}} options
   */
  constructor(address, { output, recorder, settings, key }) {
    super();
    this.#settings = settings;
    this.#connection = new Connection(address, { key });
    this.#answers = new Answers(output, (event) => this.#connection.send(event));
    this.#clock = new TurnClock(recorder, (response) => fetchTimeline(response, key));
    this.#connection.addEventListener("opened", ({ detail }) => this.#opened(detail.resumed));
    this.#connection.addEventListener("lost", () => this.#lost());
    this.#connection.addEventListener("ended", ({ detail }) => this.#ended(detail));
    this.#connection.addEventListener("event", ({ detail }) => this.#follow(detail));
    this.#answers.addEventListener("change", () => this.#update());
    for (const type of ["sound", "cut"]) {
      this.#answers.addEventListener(type, ({ detail }) => this.#tell(type, detail));
    }
    this.#connection.open();
  }

  /** What is going on. @returns {TalkState} */
  get state() {
    return this.#state;
  }

  /** Whether there is an answer to be interrupted. */
  get interruptible() {
    return this.#answers.active || this.#answers.audible;
  }

  /** Takes in a frame of the microphone. @param {Int16Array} samples */
  hear(samples) {
    if (!this.#listens || this.#isStalled()) return;
    const bytes = new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength);
    this.#connection.send({ type: "input_audio_buffer.append", audio: toBase64(bytes) });
  }

  /** Says something in writing. @param {string} text */
  write(text) {
    this.interrupt();
    this.#whenOpen(() => {
      this.#clock.turnEnded({ spoken: false });
      this.#waiting = true;
      const content = [{ type: "input_text", text }];
      this.#connection.send({ type: "conversation.item.create", item: { type: "message", role: "user", content } });
      this.#connection.send({ type: "response.create" });
      this.#update();
    });
  }

  /** The person says that the turn is over. */
  commit() {
    this.#clock.turnEnded({ spoken: true });
    this.#waiting = true;
    this.#connection.send({ type: "input_audio_buffer.commit" });
    this.#connection.send({ type: "response.create" });
    this.#update();
  }

  /** Stops the answer. */
  interrupt() {
    if (this.interruptible) this.#answers.interrupt({ tell: true });
  }

  /** @param {import("./session-settings.js").TalkSettings} settings */
  change(settings) {
    this.#settings = settings;
    this.#connection.send({ type: "session.update", session: sessionOf(settings, { first: false }) });
  }

  /** The network is back, or the page is looked at again. */
  hurry() {
    this.#connection.hurry();
  }

  /** The network is gone, or another one has taken its place. */
  networkChanged() {
    this.#connection.drop();
    this.#update();
  }

  /** Ends the conversation. */
  close() {
    this.#connection.close();
  }

  #opened(resumed) {
    if (!resumed) {
      this.#answers.reset();
      this.#connection.send({ type: "session.update", session: sessionOf(this.#settings, { first: true }) });
      for (const item of this.transcript.asItems()) this.#connection.send({ type: "conversation.item.create", item });
      if (this.#known) this.#tell("retold", {});
    }
    this.#known = true;
    this.#listens = true;
    for (const act of this.#queue.splice(0)) act();
    this.#update();
  }

  #lost() {
    this.#listens = false;
    this.#hearing = false;
    this.#update();
  }

  #ended({ reason, asked }) {
    this.#listens = false;
    this.#answers.reset();
    this.#state = "ended";
    const message = asked ? "" : reason || "The connection to the server was lost.";
    this.#tell("state", { state: this.#state });
    this.#tell("ended", { message, known: this.#known });
  }

  #follow(event) {
    this.#clock.follow(event);
    this.#answers.follow(event);
    this.#turns(event);
    const turn = this.transcript.follow(event);
    if (turn !== null) this.#tell("turn", { turn });
    const problem = problemOf(event, turn);
    if (problem !== null) this.#tell("problem", { message: problem });
    // The server knows the words of what was heard; it is asked, as every client can.
    if (event.type === "conversation.item.truncated") this.#connection.send({ type: "conversation.item.retrieve", item_id: event.item_id });
    if (event.type === "conversation.item.retrieved") this.#struck(event.item);
    this.#update();
  }

  #struck(item) {
    const heard = item.content?.find((part) => part.type === "output_audio")?.transcript ?? "";
    this.#tell("struck", { item: item.id, heard });
  }

  #turns(event) {
    if (event.type === "input_audio_buffer.speech_started") {
      this.#hearing = true;
      if (this.#settings.interruptible) this.#answers.interrupt({ tell: false });
    } else if (event.type === "input_audio_buffer.speech_stopped") {
      this.#hearing = false;
      this.#waiting = true;
    } else if (event.type === "response.done" || event.type === "error") {
      this.#waiting = false;
    }
  }

  /** Whether the network takes the microphone too slowly; if it takes nothing for long, another socket is tried. */
  #isStalled() {
    if (this.#connection.waitingBytes <= MOST_WAITING_BYTES) {
      this.#stalledSince = null;
      return false;
    }
    this.#stalledSince ??= performance.now();
    if (performance.now() - this.#stalledSince > LONGEST_STALL) {
      this.#stalledSince = null;
      this.#connection.drop();
    }
    return true;
  }

  #update() {
    if (this.#state === "ended") return;
    const state = this.#stateNow();
    if (state !== this.#state) {
      this.#state = state;
      this.#tell("state", { state });
    } else {
      this.#tell("activity", {});
    }
  }

  #stateNow() {
    if (this.#connection.offline) return "offline";
    if (!this.#connection.isOpen || !this.#listens) return this.#known ? "reconnecting" : "connecting";
    if (this.#hearing) return "hearing";
    if (this.#answers.audible) return "speaking";
    return this.#answers.active || this.#waiting ? "thinking" : "listening";
  }

  #whenOpen(act) {
    if (this.#listens) act();
    else this.#queue.push(act);
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
