/** What is known about one utterance's times, from the wish to the last sample. Times are in milliseconds. */

/** @typedef {{name: string, start: number, end: number, measured: "server" | "page"}} Span */

export class Utterance {
  /** Gaps between arrivals of sound. @type {number[]} */
  gaps = [];
  underruns = 0;
  /** "running", "finished", "interrupted" or "failed". */
  outcome = "running";
  /** What the server says of it. @type {import("../api/timeline.js").Timeline | null} */
  served = null;
  /** What passes before the server's request begins; in a conversation that is its ear's. */
  before = "network";
  firstSoundAt = null;
  lastSoundAt = null;
  playedAt = null;
  endedAt = null;
  soundSeconds = 0;
  #serverMilliseconds = 0;

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

  /** The server answered; its header says how long it took. @param {{name: string, milliseconds: number}[]} timings */
  answered(timings) {
    this.#serverMilliseconds = timings.find((timing) => timing.name === "first-audio")?.milliseconds ?? 0;
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
   * The timeline: where the time went until the first sound, and what followed. Up to the first sound the server's
   * parts follow each other: the waiting line, each stage until the next one has enough of its output to begin, and
   * sending. What the page waited longer is the network's, or the ear's in a conversation.
   * @param {number} [now] How far an utterance that still runs has come.
   * @returns {Span[]}
   */
  spans(now = performance.now()) {
    const spans = [];
    let clock = this.askedAt;
    const add = (name, end, measured) => {
      if (end === null || end <= clock) return;
      spans.push({ name, start: clock - this.askedAt, end: end - this.askedAt, measured });
      clock = end;
    };
    if (this.firstSoundAt === null) return spans;
    const parts = this.#serverParts();
    const rest = Math.max(0, this.firstSoundMilliseconds - (parts.at(-1)?.until ?? 0));
    if (this.before === "ear") add("ear", this.askedAt + rest, "page");
    const begun = clock;
    for (const { name, until } of parts) add(name, Math.min(begun + until, this.firstSoundAt), "server");
    add("network", this.firstSoundAt, "page");
    add("buffered", this.playedAt, "page");
    if (this.playedAt !== null) add("played", this.endedAt ?? now, "page");
    return spans;
  }

  /** Each part of the server's wait, and until when it lasted, from the request's arrival on. */
  #serverParts() {
    const { served } = this;
    if (!served || served.first_audio_at_ms === null) return [{ name: "server", until: this.#serverMilliseconds }];
    const { stages } = served;
    const ends = stages.map((_, index) => couldBegin(stages[index + 1]) ?? served.first_audio_at_ms);
    return [
      { name: "admission", until: served.opened_at_ms ?? 0 },
      ...stages.map(({ stage }, index) => ({ name: stage, until: ends[index] })),
      { name: "server", until: served.first_sent_at_ms ?? served.first_audio_at_ms },
    ];
  }
}

/** When a stage had enough input for its first step; null where there was none. */
function couldBegin(stage) {
  const step = stage?.first_step_at_ms ?? null;
  return step === null ? null : step - stage.queue_ms;
}
