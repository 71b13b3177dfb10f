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
    const wanted = Object.entries(labels);
    return this.#samples
      .filter((sample) => sample.name === name && wanted.every(([label, value]) => sample.labels[label] === value))
      .reduce((sum, sample) => sum + sample.value, 0);
  }
}
