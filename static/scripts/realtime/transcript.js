/**
 * The conversation as a person reads it, made of the server's events alone.
 *
 * @typedef {{id: string, side: "you" | "them", text: string, state: "waiting" | "open" | "done" | "interrupted" | "failed",
 *   remark: string, response: string | null}} Turn
 */

export class Transcript {
  /** In the order of the conversation. @type {Turn[]} */
  turns = [];

  /**
   * Follows one event.
   * @param {{type: string}} event
   * @returns {Turn | null} The turn that changed, if one did.
   */
  follow(event) {
    const act = this.#acts[event.type];
    return act === undefined ? null : act(event);
  }

  /** Finds a turn. @param {string} id */
  find(id) {
    return this.turns.find((turn) => turn.id === id) ?? null;
  }

  /** What was said so far, as items that tell it to a new session. */
  asItems() {
    return this.turns
      .filter((turn) => turn.text.trim() !== "" && turn.state !== "failed")
      .map(({ side, text }) =>
        side === "you"
          ? { type: "message", role: "user", content: [{ type: "input_text", text }] }
          : { type: "message", role: "assistant", content: [{ type: "output_text", text }] },
      );
  }

  #acts = {
    "input_audio_buffer.speech_started": ({ item_id }) => this.#turn(item_id, "you", "waiting"),
    "input_audio_buffer.committed": ({ item_id }) => this.#turn(item_id, "you", "waiting"),
    "conversation.item.added": ({ item }) => this.#added(item),
    "conversation.item.deleted": ({ item_id }) => this.#remove(item_id),
    "conversation.item.input_audio_transcription.delta": ({ item_id, delta }) => this.#heard(item_id, delta),
    "conversation.item.input_audio_transcription.completed": ({ item_id, transcript }) => this.#understood(item_id, transcript),
    "conversation.item.input_audio_transcription.failed": ({ item_id, error }) => this.#failed(item_id, error.message),
    "response.output_item.added": ({ item, response_id }) => this.#answering(item, response_id),
    "response.output_audio_transcript.delta": ({ item_id, delta }) => this.#said(item_id, delta),
    "response.output_text.delta": ({ item_id, delta }) => this.#said(item_id, delta),
    "response.output_audio_transcript.done": ({ item_id, transcript }) => this.#sealed(item_id, transcript),
    "response.output_text.done": ({ item_id, text }) => this.#sealed(item_id, text),
    "response.done": ({ response }) => this.#answered(response),
  };

  #turn(id, side, state) {
    const known = this.find(id);
    if (known !== null) return known;
    const turn = { id, side, text: "", state, remark: "", response: null };
    this.turns.push(turn);
    return turn;
  }

  #added(item) {
    if (item.type !== "message" || item.role !== "user") return null;
    const text = item.content.filter((part) => part.type === "input_text").map((part) => part.text).join(" ");
    const turn = this.#turn(item.id, "you", text ? "done" : "waiting");
    if (text) Object.assign(turn, { text, state: "done" });
    return turn;
  }

  #remove(id) {
    const turn = this.find(id);
    this.turns = this.turns.filter((other) => other !== turn);
    return turn;
  }

  #heard(id, delta) {
    const turn = this.#turn(id, "you", "open");
    turn.text += delta;
    turn.state = "open";
    return turn;
  }

  #understood(id, transcript) {
    const turn = this.#turn(id, "you", "done");
    turn.text = transcript.trim();
    turn.state = "done";
    if (turn.text === "") turn.remark = "Nothing was understood.";
    return turn;
  }

  #failed(id, message) {
    return Object.assign(this.#turn(id, "you", "failed"), { state: "failed", remark: message });
  }

  #answering(item, response) {
    if (item.type !== "message") return null;
    return Object.assign(this.#turn(item.id, "them", "open"), { response });
  }

  #said(id, delta) {
    const turn = this.find(id);
    if (turn !== null) turn.text += delta;
    return turn;
  }

  #sealed(id, text) {
    const turn = this.find(id);
    // An interrupted answer's text is sealed at what was heard; the page goes on showing what was cut off.
    if (turn !== null && text.length >= turn.text.length) turn.text = text;
    return turn;
  }

  #answered(response) {
    const turn = this.turns.find((one) => one.response === response.id) ?? null;
    if (turn === null) return null;
    turn.state = { completed: "done", cancelled: "interrupted", failed: "failed", incomplete: "done" }[response.status];
    if (turn.state === "failed") turn.remark = response.status_details?.error?.message ?? "The answer failed.";
    if (response.status === "incomplete") turn.remark = "The answer reached its greatest length.";
    return turn;
  }
}
