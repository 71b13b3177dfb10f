import assert from "node:assert/strict";
import { test } from "node:test";

import { PlayerCore } from "../../static/scripts/audio/player-core.js";
import { WriteQueue } from "../../static/scripts/audio/write-queue.js";

test("everything arrives in order through a buffer that is much too small", () => {
  const core = new PlayerCore({ outputRate: 24_000, capacitySeconds: 0.2 });
  const inbox = [];
  const queue = new WriteQueue(core.room, (message) => inbox.push(message));
  const deliver = () => {
    for (const message of inbox.splice(0)) {
      if (message.command === "begin") core.begin(message.segment);
      else if (message.command === "end") core.end();
      else assert.ok(message.samples.length <= core.room, "more was sent than there is room for");
      if (message.command === "write") core.write(Float32Array.from(message.samples));
    }
  };
  for (const segment of ["a", "b", "c"]) {
    queue.send({ command: "begin", segment });
    for (let piece = 0; piece < 10; piece += 1) queue.write(new Int16Array(3000));
    queue.send({ command: "end" });
  }
  const output = new Float32Array(128);
  for (let quantum = 0; quantum < 2000; quantum += 1) {
    // Messages take their time: the report is older than what was sent since.
    const { room, received } = core.report();
    deliver();
    queue.setRoom(room, received);
    core.render(output);
  }
  assert.equal(queue.waiting, 0);
  const finished = core.events.filter((event) => event.type === "finished");
  assert.deepEqual(finished.map((event) => event.segment), ["a", "b", "c"]);
  for (const event of finished) assert.equal(event.seconds, 30_000 / 24_000);
});

test("clearing forgets what was held back", () => {
  const posted = [];
  const queue = new WriteQueue(4000, (message) => posted.push(message));
  queue.write(new Int16Array(10_000));
  assert.equal(queue.waiting, 10_000 - posted[0].samples.length);
  queue.clear();
  queue.setRoom(100_000, 0);
  assert.equal(queue.waiting, 0);
  assert.equal(posted.length, 1);
});
