import assert from "node:assert/strict";
import { test } from "node:test";

import { RingBuffer } from "../../static/scripts/audio/ring-buffer.js";

const samples = (...values) => Float32Array.from(values);

test("what goes in comes out in order, across the seam", () => {
  const ring = new RingBuffer(5);
  const out = new Float32Array(5);
  let next = 0;
  let expected = 0;
  for (let round = 0; round < 50; round += 1) {
    const count = 1 + (round % 4);
    const written = ring.write(Float32Array.from({ length: count }, () => next++));
    assert.equal(written, count);
    assert.equal(ring.read(out, count), count);
    for (let index = 0; index < count; index += 1) assert.equal(out[index], expected++);
  }
  assert.equal(ring.length, 0);
});

test("a full buffer takes no more and says so", () => {
  const ring = new RingBuffer(3);
  assert.equal(ring.write(samples(1, 2)), 2);
  assert.equal(ring.write(samples(3, 4)), 1);
  assert.equal(ring.room, 0);
  const out = new Float32Array(4);
  assert.equal(ring.read(out, 4), 3);
  assert.deepEqual([...out], [1, 2, 3, 0]);
});

test("clearing forgets what waits", () => {
  const ring = new RingBuffer(4);
  ring.write(samples(1, 2, 3));
  ring.clear();
  assert.equal(ring.length, 0);
  ring.write(samples(9));
  const out = new Float32Array(1);
  ring.read(out, 1);
  assert.equal(out[0], 9);
});

test("a size that is no size is refused", () => {
  assert.throws(() => new RingBuffer(0), RangeError);
  assert.throws(() => new RingBuffer(1.5), RangeError);
});
