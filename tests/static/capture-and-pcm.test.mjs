import assert from "node:assert/strict";
import { test } from "node:test";

import { CaptureCore } from "../../static/scripts/audio/capture-core.js";
import { SampleJoiner, fromBase64, intoInt16, toBase64, toFloat, toWav } from "../../static/scripts/audio/pcm.js";

/** Captures a second of a tone at a device's rate. */
function capture(inputRate, options = {}, before = () => {}) {
  const frames = [];
  const core = new CaptureCore({ inputRate, ...options }, (samples, level) => frames.push({ samples, level }));
  before(core);
  const length = Math.floor(inputRate / 128) * 128;
  const sound = Float32Array.from({ length }, (_, index) => 0.5 * Math.sin((2 * Math.PI * 440 * index) / inputRate));
  for (let begin = 0; begin < length; begin += 128) core.process(sound.subarray(begin, begin + 128));
  return frames;
}

for (const rate of [16_000, 24_000, 44_100, 48_000, 96_000]) {
  test(`a second at ${rate} Hz becomes frames of 20 ms at 24 kHz`, () => {
    const frames = capture(rate);
    assert.ok(frames.every((frame) => frame.samples.length === 480));
    assert.ok(frames.length >= 48 && frames.length <= 50, `${frames.length} frames`);
    const samples = frames.flatMap((frame) => [...frame.samples]).slice(480);
    const crossings = samples.filter((value, index) => index && samples[index - 1] < 0 && value >= 0).length;
    assert.ok(Math.abs(crossings / (samples.length / 24_000) - 440) < 5, "the pitch is kept");
    assert.ok(Math.abs(frames.at(-1).level - 0.5 / Math.SQRT2) < 0.01);
  });
}

test("a muted microphone goes on as silence", () => {
  const frames = capture(48_000, {}, (core) => {
    core.muted = true;
  });
  assert.ok(frames.length > 40);
  assert.ok(frames.every((frame) => frame.level === 0 && frame.samples.every((sample) => sample === 0)));
});

test("frames can be kept", () => {
  const [first, second] = capture(48_000);
  assert.notEqual(first.samples.buffer, second.samples.buffer);
});

test("samples are rounded and clipped", () => {
  const integers = new Int16Array(5);
  intoInt16(Float32Array.of(0, 0.5, -0.5, 2, -2), integers);
  assert.deepEqual([...integers], [0, 16384, -16384, 32767, -32768]);
  assert.deepEqual([...toFloat(Int16Array.of(16384, -32768))], [0.5, -1]);
});

test("base64 goes there and back", () => {
  const bytes = Uint8Array.from({ length: 20_001 }, (_, index) => (index * 31) % 256);
  assert.equal(toBase64(bytes), Buffer.from(bytes).toString("base64"));
  assert.deepEqual(fromBase64(toBase64(bytes)), bytes);
});

test("odd bytes are carried to the next piece", () => {
  const whole = Uint8Array.from({ length: 101 }, (_, index) => index);
  const joiner = new SampleJoiner();
  const joined = [];
  for (let begin = 0, size = 0; begin < whole.length; begin += size, size = (size + 1) % 4) {
    joined.push(...joiner.join(whole.subarray(begin, begin + size)));
  }
  const expected = new Int16Array(whole.buffer.slice(0, 100));
  assert.deepEqual(joined, [...expected]);
});

test("a WAV file states its true size", () => {
  const file = toWav([Int16Array.of(1, 2), Int16Array.of(-3)]);
  const view = new DataView(file.buffer);
  assert.equal(file.length, 50);
  assert.equal(String.fromCharCode(...file.subarray(0, 4)), "RIFF");
  assert.equal(view.getUint32(4, true), 42);
  assert.equal(view.getUint32(24, true), 24_000);
  assert.equal(view.getUint32(40, true), 6);
  assert.deepEqual([44, 46, 48].map((offset) => view.getInt16(offset, true)), [1, 2, -3]);
});
