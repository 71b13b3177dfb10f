/** Converts between sample rates with a windowed-sinc filter whose state carries over from call to call. */

const ZERO_CROSSINGS = 16;
const MOST_PHASES = 512;
const KAISER_BETA = 8;
const PASSBAND = 0.94;

function greatestCommonDivisor(a, b) {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

/** The modified Bessel function of order zero, which Kaiser's window is made of. */
function bessel(x) {
  let sum = 1;
  let term = 1;
  for (let k = 1; term > sum * 1e-12; k += 1) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

function sinc(x) {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}

/** One row of filter taps for each fraction of an input sample, newest tap last. */
function buildKernels(phases, taps, cutoff) {
  const kernels = new Float32Array(phases * taps);
  const half = taps / 2;
  for (let phase = 0; phase < phases; phase += 1) {
    const row = kernels.subarray(phase * taps, (phase + 1) * taps);
    let sum = 0;
    for (let tap = 0; tap < taps; tap += 1) {
      const distance = tap - half + 1 - phase / phases;
      const edge = Math.min(1, Math.abs(distance) / half);
      const window = bessel(KAISER_BETA * Math.sqrt(1 - edge * edge)) / bessel(KAISER_BETA);
      row[tap] = cutoff * sinc(cutoff * distance) * window;
      sum += row[tap];
    }
    for (let tap = 0; tap < taps; tap += 1) row[tap] /= sum;
  }
  return kernels;
}

export class Resampler {
  #up;
  #down;
  #phases;
  #taps;
  #kernels;
  #history;
  #newest = 0;
  #position;

  /**
   * @param {number} inputRate Samples a second that go in.
   * @param {number} outputRate Samples a second that come out.
   */
  constructor(inputRate, outputRate) {
    if (!(inputRate > 0) || !(outputRate > 0)) {
      throw new RangeError(`Cannot resample from ${inputRate} to ${outputRate} Hz.`);
    }
    const divisor = greatestCommonDivisor(Math.round(inputRate), Math.round(outputRate));
    this.#up = Math.round(outputRate) / divisor;
    this.#down = Math.round(inputRate) / divisor;
    this.#phases = Math.min(this.#up, MOST_PHASES);
    const narrowing = Math.min(1, outputRate / inputRate);
    this.#taps = 2 * Math.ceil(ZERO_CROSSINGS / narrowing);
    this.#kernels = buildKernels(this.#phases, this.#taps, narrowing * PASSBAND);
    // Every sample is stored twice, so that the newest ones always lie in one piece.
    this.#history = new Float32Array(2 * this.#taps);
    this.#position = this.#up;
  }

  /** How many input samples the output lags behind. */
  get delay() {
    return this.#taps / 2;
  }

  /**
   * @param {number} outputs A number of output samples.
   * @returns {number} How many input samples the next that many outputs consume.
   */
  inputsFor(outputs) {
    return outputs < 1 ? 0 : Math.floor((this.#position + (outputs - 1) * this.#down) / this.#up);
  }

  /**
   * @param {number} inputs A number of input samples.
   * @returns {number} How many output samples they are enough for.
   */
  outputsFor(inputs) {
    return Math.max(0, Math.floor((this.#up * (inputs + 1) - 1 - this.#position) / this.#down) + 1);
  }

  /**
   * Makes output samples; consumes exactly `inputsFor(count)` of the input.
   * @param {Float32Array} input
   * @param {Float32Array} output
   * @param {number} count How many to make.
   */
  process(input, output, count) {
    let next = 0;
    for (let index = 0; index < count; index += 1) {
      while (this.#position >= this.#up) {
        this.#push(input[next]);
        next += 1;
        this.#position -= this.#up;
      }
      output[index] = this.#filter();
      this.#position += this.#down;
    }
  }

  /** Forgets everything that went in. */
  reset() {
    this.#history.fill(0);
    this.#position = this.#up;
  }

  #push(sample) {
    this.#history[this.#newest] = sample;
    this.#history[this.#newest + this.#taps] = sample;
    this.#newest = (this.#newest + 1) % this.#taps;
  }

  #filter() {
    const row = Math.floor((this.#position * this.#phases) / this.#up) * this.#taps;
    let sum = 0;
    for (let tap = 0; tap < this.#taps; tap += 1) {
      sum += this.#kernels[row + tap] * this.#history[this.#newest + tap];
    }
    return sum;
  }
}
