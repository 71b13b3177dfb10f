/** The settings of the Talk view. */

import { byId } from "../dom.js";
import { keep, recall, remember } from "../preferences.js";

/** Dispatches `change`. */
export class TalkSettingsForm extends EventTarget {
  #voice = byId("talk-voice");
  #eagerness = byId("talk-eagerness");
  #silence = byId("talk-silence");
  #bargeIn = byId("talk-barge-in");
  #instructions = byId("talk-instructions");
  #turns = [...document.querySelectorAll("input[name=turns]")];

  constructor() {
    super();
    const controls = [this.#eagerness, this.#silence, this.#bargeIn, this.#instructions];
    for (const control of controls) keep(control, control.id);
    const chosen = this.#turns.find((radio) => radio.value === recall("talk-turns"));
    if (chosen !== undefined) chosen.checked = true;
    for (const control of [...controls, ...this.#turns]) control.addEventListener("change", () => this.#changed());
    this.#silence.addEventListener("input", () => this.#show());
    this.#show();
  }

  /** @returns {import("../realtime/session-settings.js").TalkSettings} */
  get value() {
    return {
      voice: this.#voice.value || "alloy",
      turns: this.#chosenTurns,
      eagerness: this.#eagerness.value,
      silenceMilliseconds: Number(this.#silence.value),
      interruptible: this.#bargeIn.checked,
      instructions: this.#instructions.value.trim(),
    };
  }

  /** The voice is fixed while a conversation has sound in it. @param {boolean} fixed */
  set voiceIsFixed(fixed) {
    this.#voice.disabled = fixed;
  }

  get #chosenTurns() {
    return this.#turns.find((radio) => radio.checked).value;
  }

  #changed() {
    remember("talk-turns", this.#chosenTurns);
    this.#show();
    this.dispatchEvent(new Event("change"));
  }

  #show() {
    byId("talk-eagerness-field").hidden = this.#chosenTurns !== "semantic";
    byId("talk-silence-field").hidden = this.#chosenTurns !== "silence";
    byId("talk-silence-value").textContent = `${this.#silence.value} ms`;
  }
}
