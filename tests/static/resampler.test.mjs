import assert from "node:assert/strict";
import { test } from "node:test";

import { Resampler } from "../../static/scripts/audio/resampler.js";

const sine = (frequency, rate, length) =>
  Float32Array.from({ length }, (_, index) => Math.sin((2 * Math.PI * frequency * index) / rate));

/** Resamples everything, in pieces of the given numbers of output samples. */
function convert(input, inputRate, outputRate, pieces = [128]) {
  const resampler = new Resampler(inputRate, outputRate);
  const result = [];
  let offset = 0;
  for (let round = 0; ; round += 1) {
    const count = pieces[round % pieces.length];
    const needed = resampler.inputsFor(count);
    if (offset + needed > input.length) return { output: Float32Array.from(result), delay: resampler.delay };
    const output = new Float32Array(count);
    resampler.process(input.subarray(offset, offset + needed), output, count);
    offset += needed;
    result.push(...output);
  }
}

/** The largest difference from a sine of the output's rate, past the filter's start. */
function error(output, frequency, inputRate, outputRate, delay) {
  let worst = 0;
  const begin = Math.ceil((4 * delay * outputRate) / inputRate);
  for (let index = begin; index < output.length; index += 1) {
    const time = index / outputRate - delay / inputRate;
    worst = Math.max(worst, Math.abs(output[index] - Math.sin(2 * Math.PI * frequency * time)));
  }
  return worst;
}

for (const [inputRate, outputRate] of [[24000, 48000], [24000, 44100], [24000, 24000], [48000, 24000], [44100, 24000], [24000, 16000], [24000, 192000]]) {
  test(`a tone keeps its pitch, level and phase from ${inputRate} to ${outputRate} Hz`, () => {
    const { output, delay } = convert(sine(1000, inputRate, inputRate / 4), inputRate, outputRate);
    assert.ok(output.length > outputRate / 5);
    assert.ok(error(output, 1000, inputRate, outputRate, delay) < 2e-3);
  });
}

test("tones that the lower rate cannot hold are removed, not folded", () => {
  const { output } = convert(sine(15000, 48000, 12000), 48000, 24000);
  const loudest = output.subarray(200).reduce((peak, value) => Math.max(peak, Math.abs(value)), 0);
  assert.ok(loudest < 1e-3, `folded with ${loudest}`);
});

test("the size of the pieces does not change one sample", () => {
  const input = sine(440, 24000, 6000);
  const whole = convert(input, 24000, 44100, [128]).output;
  const pieces = convert(input, 24000, 44100, [1, 7, 64, 129, 3]).output;
  const length = Math.min(whole.length, pieces.length);
  assert.ok(length > 10000);
  assert.deepEqual(pieces.subarray(0, length), whole.subarray(0, length));
});

test("it knows how much it needs", () => {
  for (const [inputRate, outputRate] of [[24000, 48000], [24000, 44100], [48000, 24000], [44100, 24000], [24000, 47999]]) {
    const resampler = new Resampler(inputRate, outputRate);
    for (let round = 0; round < 40; round += 1) {
      for (let inputs = 0; inputs < 20; inputs += 1) {
        const outputs = resampler.outputsFor(inputs);
        assert.ok(resampler.inputsFor(outputs) <= inputs);
        assert.ok(resampler.inputsFor(outputs + 1) > inputs);
      }
      const count = 1 + (round % 5);
      resampler.process(new Float32Array(resampler.inputsFor(count)), new Float32Array(count), count);
    }
  }
});

test("after a reset it sounds like new", () => {
  const resampler = new Resampler(24000, 48000);
  const first = new Float32Array(64);
  const input = sine(300, 24000, 64);
  resampler.process(input, first, 64);
  resampler.reset();
  const second = new Float32Array(64);
  resampler.process(input, second, 64);
  assert.deepEqual(second, first);
});

test("rates that are none are refused", () => {
  assert.throws(() => new Resampler(0, 48000), RangeError);
  assert.throws(() => new Resampler(24000, Number.NaN), RangeError);
});
