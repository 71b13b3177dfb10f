/** Conversions between 16-bit samples, floating-point samples, base64 and WAV. */

export const SAMPLE_RATE = 24_000;
export const BYTES_PER_SECOND = 2 * SAMPLE_RATE;
const LARGEST = 32_768;

/**
 * @param {Int16Array} integers
 * @returns {Float32Array} The same samples between -1 and 1.
 */
export function toFloat(integers) {
  const floats = new Float32Array(integers.length);
  for (let index = 0; index < integers.length; index += 1) floats[index] = integers[index] / LARGEST;
  return floats;
}

/**
 * @param {Float32Array} floats
 * @param {Int16Array} integers Receives the samples; louder ones than fit are clipped.
 */
export function intoInt16(floats, integers) {
  for (let index = 0; index < integers.length; index += 1) {
    const scaled = Math.round(floats[index] * LARGEST);
    integers[index] = Math.max(-LARGEST, Math.min(LARGEST - 1, scaled));
  }
}

/**
 * @param {string} text Base64.
 * @returns {Uint8Array} The bytes.
 */
export function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index += 1) bytes[index] = binary.charCodeAt(index);
  return bytes;
}

/**
 * @param {Uint8Array} bytes
 * @returns {string} Base64.
 */
export function toBase64(bytes) {
  if (bytes.toBase64) return bytes.toBase64();
  const pieces = [];
  for (let begin = 0; begin < bytes.length; begin += 8192) {
    pieces.push(String.fromCharCode(...bytes.subarray(begin, begin + 8192)));
  }
  return btoa(pieces.join(""));
}

/** Joins byte strings that may end in the middle of a sample into whole samples. */
export class SampleJoiner {
  #rest = new Uint8Array(0);

  /**
   * @param {Uint8Array} bytes Little-endian 16-bit samples that go on where the last call ended.
   * @returns {Int16Array} All samples that are complete.
   */
  join(bytes) {
    const joined = new Uint8Array(this.#rest.length + bytes.length);
    joined.set(this.#rest);
    joined.set(bytes, this.#rest.length);
    const whole = joined.length - (joined.length % 2);
    this.#rest = joined.slice(whole);
    return new Int16Array(joined.buffer, 0, whole / 2);
  }
}

/**
 * Puts samples into a WAV file.
 * @param {Int16Array[]} pieces
 * @param {number} [rate]
 * @returns {Uint8Array}
 */
export function toWav(pieces, rate = SAMPLE_RATE) {
  const size = pieces.reduce((sum, piece) => sum + 2 * piece.length, 0);
  const file = new Uint8Array(44 + size);
  const view = new DataView(file.buffer);
  const put = (offset, text) => [...text].forEach((letter, index) => view.setUint8(offset + index, letter.charCodeAt(0)));
  put(0, "RIFF");
  view.setUint32(4, 36 + size, true);
  put(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, 2 * rate, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  put(36, "data");
  view.setUint32(40, size, true);
  let offset = 44;
  for (const piece of pieces) {
    file.set(new Uint8Array(piece.buffer, piece.byteOffset, piece.byteLength), offset);
    offset += piece.byteLength;
  }
  return file;
}
