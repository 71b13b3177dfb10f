/** Which words of a text are heard when. */

/** @typedef {{text: string, begin: number, end: number}} Token */

/**
 * Splits a text at its white space.
 * @param {string} text
 * @returns {Token[]} Each word with where it lies.
 */
export function tokensOf(text) {
  return [...text.matchAll(/\S+/gu)].map((match) => ({
    text: match[0],
    begin: match.index,
    end: match.index + match[0].length,
  }));
}

/**
 * The server counts code points; scripts count UTF-16 units.
 * @param {string} text
 * @returns {(codePoint: number) => number}
 */
export function unitsOf(text) {
  const offsets = [];
  let unit = 0;
  for (const letter of text) {
    offsets.push(unit);
    unit += letter.length;
  }
  return (codePoint) => offsets[codePoint] ?? unit;
}

export class WordTrack {
  #starts;
  #tokens;
  #unitOf;

  /** @param {string} text What is spoken. */
  constructor(text) {
    this.#tokens = tokensOf(text);
    this.#starts = new Array(this.#tokens.length).fill(null);
    this.#unitOf = unitsOf(text);
  }

  /** The words as they are written. */
  get tokens() {
    return this.#tokens;
  }

  /**
   * Notes when a word is spoken.
   * @param {{start: number, start_character: number, end_character: number}} word
   */
  add(word) {
    const begin = this.#unitOf(word.start_character);
    const end = this.#unitOf(word.end_character);
    this.#tokens.forEach((token, index) => {
      if (token.begin < end && token.end > begin) this.#starts[index] ??= word.start;
    });
  }

  /**
   * How far the listener is.
   * @param {number} seconds
   * @returns {number} The index of the last word whose sound has begun; -1 before the first.
   */
  at(seconds) {
    let current = -1;
    this.#starts.forEach((start, index) => {
      if (start !== null && start <= seconds) current = index;
    });
    return current;
  }
}
