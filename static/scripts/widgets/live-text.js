/** A text that grows while it is spoken, and whose words light up as they are heard. */

import { make } from "../dom.js";
import { tokensOf } from "./word-track.js";

export class LiveText {
  #element;
  #text = "";
  #words = [];
  #lit = 0;
  #unheardFrom = Infinity;

  /** @param {HTMLElement} element */
  constructor(element) {
    this.#element = element;
  }

  /** The words as they are known by now. @returns {string[]} */
  get words() {
    return this.#words.map((word) => word.textContent);
  }

  /** Shows the text as it is known by now. @param {string} text */
  set(text) {
    if (text === this.#text) return;
    this.#text = text;
    const tokens = tokensOf(text);
    tokens.forEach((token, index) => this.#put(index, token.text));
    for (const extra of this.#words.splice(tokens.length)) extra.remove();
  }

  /**
   * Lights up the first words.
   * @param {number} count How many have been heard, the last of them just now.
   */
  light(count) {
    const words = this.#words;
    const lit = Math.min(count, words.length);
    if (lit <= this.#lit) return;
    for (let index = Math.max(0, this.#lit - 1); index < lit - 1; index += 1) words[index].dataset.heard = "past";
    words[lit - 1].dataset.heard = "now";
    this.#lit = lit;
  }

  /** Nothing is being heard any more. @param {{all: boolean}} options Whether all of it was heard. */
  settle({ all }) {
    const lit = all ? this.#words.length : this.#lit;
    this.#words.slice(0, lit).forEach((word) => {
      word.dataset.heard = "past";
    });
    this.#lit = lit;
  }

  /** Strikes out what was not heard. @param {string} heard What was. */
  strike(heard) {
    const count = tokensOf(heard).length;
    this.#unheardFrom = count;
    this.#words.forEach((word, index) => {
      word.classList.toggle("unheard", index >= count);
      if (index < count) word.dataset.heard = "past";
      else delete word.dataset.heard;
    });
    this.#lit = count;
  }

  #put(index, text) {
    const known = this.#words[index];
    if (known !== undefined) {
      if (known.textContent !== text) known.textContent = text;
      return;
    }
    const word = make("span", { class: index < this.#unheardFrom ? "word" : "word unheard" }, text);
    this.#words.push(word);
    if (index > 0) this.#element.append(" ");
    this.#element.append(word);
  }
}
