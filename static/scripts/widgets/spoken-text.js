/** A text whose words light up as they are heard. */

import { make } from "../dom.js";
import { WordTrack } from "./word-track.js";

export class SpokenText {
  #element;
  #track;
  #words;
  #lit = -1;

  /**
   * Fills an element with a text.
   * @param {HTMLElement} element
   * @param {string} text
   */
  constructor(element, text) {
    this.#element = element;
    this.#track = new WordTrack(text);
    this.#words = [];
    const nodes = [];
    let position = 0;
    for (const token of this.#track.tokens) {
      const word = make("span", { class: "word" }, token.text);
      this.#words.push(word);
      nodes.push(text.slice(position, token.begin), word);
      position = token.end;
    }
    element.replaceChildren(...nodes, text.slice(position));
  }

  /** Notes when a word is spoken. @param {object} word As the server sends it. */
  add(word) {
    this.#track.add(word);
  }

  /** Lights up what is heard. @param {number} heardSeconds */
  show(heardSeconds) {
    this.#light(this.#track.at(heardSeconds), "now");
  }

  /** Everything was heard. */
  finish() {
    this.#light(this.#words.length - 1, "past");
  }

  #light(current, state) {
    const last = this.#words[current];
    if (current < this.#lit || last?.dataset.heard === state) return;
    for (let index = Math.max(0, this.#lit); index < current; index += 1) this.#words[index].dataset.heard = "past";
    if (last !== undefined) last.dataset.heard = state;
    this.#lit = current;
    this.#keepInView(last);
  }

  #keepInView(word) {
    if (word === undefined || this.#element.scrollHeight <= this.#element.clientHeight) return;
    const middle = word.offsetTop - this.#element.offsetTop - this.#element.clientHeight / 2;
    this.#element.scrollTop = Math.max(0, middle);
  }
}
