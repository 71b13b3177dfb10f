/** A queue of samples with a fixed size, for use on the audio thread: it never allocates after it was made. */
export class RingBuffer {
  #samples;
  #first = 0;
  #length = 0;

  /** @param {number} capacity How many samples it can hold. */
  constructor(capacity) {
    if (!Number.isInteger(capacity) || capacity < 1) {
      throw new RangeError(`A ring buffer cannot hold ${capacity} samples.`);
    }
    this.#samples = new Float32Array(capacity);
  }

  /** How many samples wait to be read. */
  get length() {
    return this.#length;
  }

  /** How many samples can be written before it is full. */
  get room() {
    return this.#samples.length - this.#length;
  }

  /**
   * Takes samples in, as many as there is room for.
   * @param {Float32Array} samples
   * @returns {number} How many were taken.
   */
  write(samples) {
    const count = Math.min(samples.length, this.room);
    const size = this.#samples.length;
    const begin = (this.#first + this.#length) % size;
    const ahead = Math.min(count, size - begin);
    this.#samples.set(samples.subarray(0, ahead), begin);
    this.#samples.set(samples.subarray(ahead, count), 0);
    this.#length += count;
    return count;
  }

  /**
   * Takes samples out, oldest first.
   * @param {Float32Array} target Where they go, from its beginning.
   * @param {number} count How many are wanted.
   * @returns {number} How many there were.
   */
  read(target, count) {
    const available = Math.min(count, this.#length);
    const ahead = Math.min(available, this.#samples.length - this.#first);
    target.set(this.#samples.subarray(this.#first, this.#first + ahead), 0);
    target.set(this.#samples.subarray(0, available - ahead), ahead);
    this.#first = (this.#first + available) % this.#samples.length;
    this.#length -= available;
    return available;
  }

  /** Forgets everything that waits. */
  clear() {
    this.#first = 0;
    this.#length = 0;
  }
}
