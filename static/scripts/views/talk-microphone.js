/** Keeps a microphone open for a conversation, also when the devices change. */

import { Microphone, MicrophoneProblem } from "../audio/microphone.js";

/** Dispatches `frame` like a microphone, and `gone` when there is none any more. */
export class TalkMicrophone extends EventTarget {
  #notices;
  #microphone = null;
  #muted = false;

  /** @param {import("../notices.js").Notices} notices */
  constructor(notices) {
    super();
    this.#notices = notices;
  }

  /** Whether the microphone is open. */
  get isOpen() {
    return this.#microphone !== null;
  }

  get muted() {
    return this.#muted;
  }

  /** @param {boolean} muted */
  set muted(muted) {
    this.#muted = muted;
    if (this.#microphone !== null) this.#microphone.muted = muted;
  }

  /**
   * Asks for the microphone.
   * @param {AudioContext} context
   * @returns {Promise<boolean>} Whether it was given; if not, the person was told why.
   */
  async open(context) {
    try {
      this.#microphone = await Microphone.open(context);
    } catch (failure) {
      if (!(failure instanceof MicrophoneProblem)) throw failure;
      this.#notices.show("microphone", failure.message);
      return false;
    }
    this.#notices.withdraw("microphone");
    this.#microphone.muted = this.#muted;
    this.#follow(context);
    return true;
  }

  /** Gives the microphone back. */
  close() {
    this.#microphone?.close();
    this.#microphone = null;
    this.muted = false;
  }

  #follow(context) {
    const microphone = this.#microphone;
    microphone.addEventListener("frame", ({ detail }) => this.dispatchEvent(new CustomEvent("frame", { detail })));
    microphone.addEventListener("lost", () => this.#replace(microphone, context));
    microphone.addEventListener("silenced", () => this.#notices.show("microphone", "Your system has muted the microphone.", { kind: "hint" }));
    microphone.addEventListener("heard", () => this.#notices.withdraw("microphone"));
  }

  /** The device was unplugged: the one that the system uses now takes its place. */
  async #replace(lost, context) {
    if (this.#microphone !== lost) return;
    lost.close();
    this.#microphone = null;
    if (await this.open(context)) {
      this.#notices.show("microphone", `Your microphone went away. Now listening with ${this.#microphone.label || "another one"}.`, { kind: "hint" });
    } else {
      this.dispatchEvent(new Event("gone"));
    }
  }
}
