/** What the page measures about one utterance, from the wish to the last sample. Times are in milliseconds. */

/** @typedef {{at: number, seconds: number}} Arrival */
/** @typedef {{name: string, label: string, start: number, end: number, measured: "server" | "page"}} Span */

const STAGES = ["admission", "ear", "thinker", "talker", "code2wav"];

export class Utterance {
  /** Gaps between arrivals of sound. @type {number[]} */
  gaps = [];
  underruns = 0;
  /** "running", "finished", "interrupted" or "failed". */
  outcome = "running";
  /** What the server said about it. @type {{name: string, milliseconds: number}[]} */
  timings = [];
  /** What the stages did meanwhile. @type {import("../api/metrics.js").StageUse[]} */
  stages = [];
  answeredAt = null;
  firstSoundAt = null;
  lastSoundAt = null;
  playedAt = null;
  endedAt = null;
  soundSeconds = 0;

  /**
   * @param {string} name
   * @param {"speak" | "talk"} kind
   * @param {string} text
   * @param {number} askedAt
   */
  constructor(name, kind, text, askedAt) {
    this.name = name;
    this.kind = kind;
    this.text = text;
    this.askedAt = askedAt;
  }

  /** The server answered. */
  answered(at, timings) {
    this.answeredAt = at;
    this.timings = timings;
  }

  /**
   * What the stages did until the first sound shares out the server's part of the wait. A server that tells it in its
   * header is believed instead.
   * @param {import("../api/metrics.js").StageUse[]} use
   */
  shareOut(use) {
    const total = this.#serverMilliseconds;
    const known = this.timings.some((timing) => STAGES.includes(timing.name));
    const parts = use.map(({ stage, steps, stepSeconds }) => ({ name: stage, milliseconds: 1000 * steps * stepSeconds }));
    const sum = parts.reduce((all, part) => all + part.milliseconds, 0);
    if (known || sum === 0) return;
    // Steps that were made before the figures came back belong to later sound.
    const scale = Math.min(1, total / sum);
    for (const { name, milliseconds } of parts) this.timings.push({ name, milliseconds: milliseconds * scale });
  }

  get #serverMilliseconds() {
    return this.timings.find((timing) => timing.name === "first-audio")?.milliseconds ?? 0;
  }

  /** Sound arrived. */
  arrived(at, seconds) {
    if (this.lastSoundAt !== null) this.gaps.push(at - this.lastSoundAt);
    this.firstSoundAt ??= at;
    this.lastSoundAt = at;
    this.soundSeconds += seconds;
  }

  /** The first sample was played. */
  played(at) {
    this.playedAt ??= at;
  }

  /** Nothing more comes. */
  ended(at, outcome) {
    if (this.endedAt !== null) return;
    this.endedAt = at;
    this.outcome = outcome;
  }

  /** From the wish to the first sound that arrived, or null. */
  get firstSoundMilliseconds() {
    return this.firstSoundAt === null ? null : this.firstSoundAt - this.askedAt;
  }

  /** How much faster than it is heard the sound was made, or null. */
  get timesRealTime() {
    if (this.firstSoundAt === null || this.lastSoundAt === this.askedAt) return null;
    return (1000 * this.soundSeconds) / (this.lastSoundAt - this.askedAt);
  }

  /**
   * The timeline: where the time went until the first sound, and what followed. The server's own figures are used
   * as far as it gave them; the rest of the wait is the network's.
   * @param {number} [now] How far an utterance that still runs has come.
   * @returns {Span[]}
   */
  spans(now = performance.now()) {
    const spans = [];
    let clock = this.askedAt;
    const add = (name, label, end, measured) => {
      if (end === null || end <= clock) return;
      spans.push({ name, label, start: clock - this.askedAt, end: end - this.askedAt, measured });
      clock = end;
    };
    if (this.firstSoundAt === null) return spans;
    const total = this.#serverMilliseconds;
    const parts = this.timings.filter((timing) => STAGES.includes(timing.name));
    for (const part of parts) add(part.name, part.name, Math.min(clock + part.milliseconds, this.firstSoundAt), "server");
    const serverEnd = Math.min(this.askedAt + total, this.firstSoundAt);
    add("server", parts.length > 0 ? "server, other" : "server", serverEnd, "server");
    add("network", "network", this.firstSoundAt, "page");
    add("buffered", "buffered", this.playedAt, "page");
    if (this.playedAt !== null) add("played", "played", this.endedAt ?? now, "page");
    return spans;
  }
}
