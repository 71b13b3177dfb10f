/** The conversation on the page: one bubble a turn, whose words light up as they are heard. */

import { byId, make } from "../dom.js";
import { Pace, WordClock } from "../realtime/word-clock.js";
import { LiveText } from "../widgets/live-text.js";

const NAMES = { you: "You", them: "Antiphon" };
const CUT = "Interrupted";

export class TalkLog {
  #log = byId("talk-log");
  #empty = byId("talk-empty");
  #notices;
  #bubbles = new Map();
  #pace = new Pace();
  #atEnd = true;
  #top = 0;

  /** @param {import("../notices.js").Notices} notices */
  constructor(notices) {
    this.#notices = notices;
    this.#log.addEventListener("scroll", () => this.#scrolled());
  }

  /** Shows a turn as it is now. @param {import("../realtime/transcript.js").Turn} turn */
  show(turn) {
    const bubble = this.#bubbles.get(turn.id) ?? this.#add(turn);
    bubble.element.dataset.state = turn.state;
    if (turn.text !== "") {
      bubble.waiting.hidden = true;
      bubble.text.set(turn.text);
      bubble.clock.setWords(bubble.text.words);
    }
    if (turn.side === "you" && turn.state !== "open") bubble.text.settle({ all: true });
    if (turn.state === "done" && turn.text === "") bubble.waiting.hidden = true;
    bubble.remark.textContent = turn.remark || (bubble.cut ? CUT : "");
    if (turn.side === "them" && turn.state === "done") bubble.clock.finish();
    this.#announce(bubble, turn);
    this.#follow();
  }

  /** Sound of an answer has arrived. @param {string} item @param {number} milliseconds */
  addSound(item, milliseconds) {
    this.#bubbles.get(item)?.clock.addSound(milliseconds);
  }

  /** Lights up the words of an answer that have been heard. @param {string} item @param {number} heardSeconds */
  light(item, heardSeconds) {
    const bubble = this.#bubbles.get(item);
    if (bubble === undefined || bubble.cut) return;
    bubble.text.light(bubble.clock.wordsAt(1000 * heardSeconds));
  }

  /** All of an answer was heard. @param {string} item */
  settle(item) {
    const bubble = this.#bubbles.get(item);
    if (bubble !== undefined && !bubble.cut) bubble.text.settle({ all: true });
  }

  /** An answer was cut off. @param {string} item */
  cut(item) {
    const bubble = this.#bubbles.get(item);
    if (bubble === undefined) return;
    bubble.cut = true;
    bubble.text.settle({ all: false });
    bubble.remark.textContent = CUT;
    this.#follow();
  }

  /** The server says what was heard of an answer that was cut off. @param {string} item @param {string} heard */
  strike(item, heard) {
    const bubble = this.#bubbles.get(item);
    if (bubble?.cut) bubble.text.strike(heard);
  }

  /** Forgets everything. */
  clear() {
    for (const { element } of this.#bubbles.values()) element.remove();
    this.#bubbles.clear();
    this.#empty.hidden = false;
    this.#atEnd = true;
    this.#top = 0;
  }

  #add({ id, side }) {
    const words = make("span", { class: "words", dir: "auto" });
    const waiting = make("span", { class: "words pending" }, side === "you" ? "Listening…" : "…");
    const remark = make("small", { class: "aside" });
    const element = make("div", { class: "turn", "data-side": side }, make("span", { class: "who" }, NAMES[side]), waiting, words, remark);
    const bubble = { element, waiting, remark, text: new LiveText(words), clock: new WordClock(this.#pace), cut: false, announced: false };
    this.#bubbles.set(id, bubble);
    this.#empty.hidden = true;
    this.#log.append(element);
    return bubble;
  }

  /** Screen readers hear whole turns; word by word they would never finish one. */
  #announce(bubble, { side, state, text, remark }) {
    const over = state === "done" || state === "interrupted" || state === "failed";
    if (!over || bubble.announced || (text === "" && remark === "")) return;
    bubble.announced = true;
    this.#notices.announce(`${NAMES[side]}: ${text} ${remark}`);
  }

  /** Only a person scrolls up; the text that grows merely moves the end away. */
  #scrolled() {
    const { scrollHeight, scrollTop, clientHeight } = this.#log;
    if (scrollTop < this.#top) this.#atEnd = false;
    if (scrollHeight - scrollTop - clientHeight < 40) this.#atEnd = true;
    this.#top = scrollTop;
  }

  /** Keeps the newest turn in view, unless the person reads further up. */
  #follow() {
    // The browser tells of scrolling a little late; what the person did since counts too. A text that became shorter
    // moves the log as well, but leaves it at its end.
    const { scrollHeight, scrollTop, clientHeight } = this.#log;
    if (scrollTop < this.#top && scrollHeight - scrollTop - clientHeight >= 40) this.#atEnd = false;
    if (!this.#atEnd) return;
    this.#log.scrollTop = scrollHeight;
    this.#top = this.#log.scrollTop;
  }
}
