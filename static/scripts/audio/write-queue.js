/** Sends sound to a buffer of fixed size that lies behind a message port, and holds back what does not fit. */

/** Room that is left free for the few samples by which the buffer ends each utterance. */
const MARGIN = 2048;

export class WriteQueue {
  #post;
  #room;
  #sent = 0;
  #received = 0;
  #messages = [];
  #waiting = 0;

  /**
   * @param {number} room How many samples fit at first.
   * @param {(message: object, transfer: ArrayBuffer[]) => void} post Sends a message on.
   */
  constructor(room, post) {
    this.#room = room;
    this.#post = post;
  }

  /** How many samples are held back. */
  get waiting() {
    return this.#waiting;
  }

  /** Sends samples behind everything before them. @param {Int16Array} samples */
  write(samples) {
    this.#waiting += samples.length;
    this.#messages.push({ command: "write", samples });
    this.#pump();
  }

  /** Sends a command behind everything before it. @param {object} message */
  send(message) {
    this.#messages.push(message);
    this.#pump();
  }

  /** Forgets what is held back. */
  clear() {
    this.#messages = [];
    this.#waiting = 0;
  }

  /**
   * Notes what the other side said.
   * @param {number} room How many samples fit there.
   * @param {number} received How many samples have ever arrived there.
   */
  setRoom(room, received) {
    this.#room = room;
    this.#received = received;
    this.#pump();
  }

  #pump() {
    while (this.#messages.length > 0) {
      const [message] = this.#messages;
      if (message.command !== "write") {
        this.#messages.shift();
        this.#post(message, []);
        continue;
      }
      const allowed = this.#room - (this.#sent - this.#received) - MARGIN;
      if (allowed <= 0) return;
      const { samples } = message;
      const count = Math.min(allowed, samples.length);
      if (count === samples.length) this.#messages.shift();
      else message.samples = samples.subarray(count);
      this.#sendSamples(samples, count);
    }
  }

  #sendSamples(samples, count) {
    const piece = samples.slice(0, count);
    this.#sent += count;
    this.#waiting -= count;
    this.#post({ command: "write", samples: piece }, [piece.buffer]);
  }
}
