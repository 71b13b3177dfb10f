/**
 * Estimates which words of an answer are heard when. The protocol tells the words and the sound, but not how they
 * belong together; the length of the words, and pauses at the marks between them, come close.
 */

const PAUSES = { ",": 4, ";": 5, ":": 5, ".": 8, "!": 8, "?": 8, "…": 8, "。": 8, "、": 4 };
const LETTER_WEIGHT = 1;
const WORD_WEIGHT = 1.4;

/** What voices usually need for one unit of weight. */
const USUAL_PACE = 58;
const LEARNING = 0.3;

/** How long a word takes, relative to others. @param {string} word */
export function weightOf(word) {
  const letters = word.match(/[\p{L}\p{N}]/gu)?.length ?? 0;
  return letters * LETTER_WEIGHT + WORD_WEIGHT + (PAUSES[word.at(-1)] ?? 0);
}

/** What is known of a voice's pace, from one answer to the next. */
export class Pace {
  /** Milliseconds for one unit of weight. */
  value = USUAL_PACE;

  /** Learns from a whole answer. @param {number} milliseconds @param {number} weight */
  learn(milliseconds, weight) {
    if (milliseconds > 300 && weight > 5) this.value += LEARNING * (milliseconds / weight - this.value);
  }
}

export class WordClock {
  #pace;
  #weights = [];
  #milliseconds = 0;
  #complete = false;

  /** @param {Pace} pace */
  constructor(pace) {
    this.#pace = pace;
  }

  /** How much sound has arrived. */
  get milliseconds() {
    return this.#milliseconds;
  }

  /** @param {string[]} words All words that are known by now. */
  setWords(words) {
    this.#weights = words.map(weightOf);
  }

  /** More sound has arrived. @param {number} milliseconds */
  addSound(milliseconds) {
    this.#milliseconds += milliseconds;
  }

  /** All words and all sound are known. */
  finish() {
    this.#complete = true;
    this.#pace.learn(this.#milliseconds, this.#total);
  }

  /**
   * @param {number} heardMilliseconds
   * @returns {number} How many words have begun.
   */
  wordsAt(heardMilliseconds) {
    if (heardMilliseconds <= 0) return 0;
    const pace = this.#complete && this.#total > 0 ? this.#milliseconds / this.#total : this.#pace.value;
    let begins = 0;
    let count = 0;
    for (const weight of this.#weights) {
      if (begins > heardMilliseconds) break;
      count += 1;
      begins += weight * pace;
    }
    return count;
  }

  get #total() {
    return this.#weights.reduce((sum, weight) => sum + weight, 0);
  }
}
