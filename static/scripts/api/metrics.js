/** Reads Prometheus' text format, as far as the server's `/metrics` uses it. */

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

export class Metrics {
  #samples = [];

  /** @param {string} text The body of `/metrics`. */
  constructor(text) {
    for (const line of text.split("\n")) {
      const match = line.startsWith("#") ? null : LINE.exec(line);
      if (match === null) continue;
      const labels = Object.fromEntries([...(match[2] ?? "").matchAll(LABEL)].map(([, name, value]) => [name, value]));
      this.#samples.push({ name: match[1], labels, value: Number(match[3]) });
    }
  }

  /**
   * The sum of a metric's samples, over all labels that are not given.
   * @param {string} name
   * @param {Record<string, string>} [labels]
   * @returns {number}
   */
  sum(name, labels = {}) {
    return this.#matching(name, labels).reduce((sum, sample) => sum + sample.value, 0);
  }

  /** Whether the server has the metric. @param {string} name */
  has(name) {
    return this.#samples.some((sample) => sample.name === name);
  }

  /**
   * All values of a label.
   * @param {string} name
   * @param {string} label
   * @returns {string[]}
   */
  valuesOf(name, label) {
    const values = this.#matching(name, {}).map((sample) => sample.labels[label]);
    return [...new Set(values.filter((value) => value !== undefined))];
  }

  #matching(name, labels) {
    const wanted = Object.entries(labels);
    return this.#samples.filter(
      (sample) => sample.name === name && wanted.every(([label, value]) => sample.labels[label] === value),
    );
  }
}
