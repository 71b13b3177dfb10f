import assert from "node:assert/strict";
import { test } from "node:test";

import { PlayerCore } from "../../static/scripts/audio/player-core.js";

const QUANTUM = 128;
const RATE = 24_000;
const constant = (length, value = 0.5) => new Float32Array(length).fill(value);
const tone = (length) => Float32Array.from({ length }, (_, index) => 0.5 * Math.sin((2 * Math.PI * 220 * index) / RATE));

const player = (options = {}) => new PlayerCore({ outputRate: 48_000, ...options });

/** Plays a number of quanta and returns what was heard. */
function play(core, quanta) {
  const heard = new Float32Array(quanta * QUANTUM);
  for (let index = 0; index < quanta; index += 1) core.render(heard.subarray(index * QUANTUM, (index + 1) * QUANTUM));
  return heard;
}

const largestStep = (sound) => sound.reduce((most, value, index) => Math.max(most, index ? Math.abs(value - sound[index - 1]) : 0), 0);
const isSilent = (sound) => sound.every((value) => value === 0);
const eventTypes = (core) => core.events.map((event) => event.type);

test("nothing is heard before enough is buffered", () => {
  const core = player({ startSeconds: 0.06 });
  core.begin("a");
  core.write(constant(0.059 * RATE));
  assert.ok(isSilent(play(core, 10)));
  assert.equal(core.state, "filling");
  core.write(constant(0.2 * RATE));
  assert.ok(!isSilent(play(core, 4)));
  assert.equal(core.state, "playing");
});

test("a short utterance that is complete starts at once and is played whole", () => {
  const core = player({ startSeconds: 0.06 });
  core.begin("a");
  core.write(constant(480));
  core.end();
  const heard = play(core, 12);
  const sounding = heard.filter((value) => Math.abs(value) > 0.25).length;
  assert.ok(Math.abs(sounding - 960) < 300, `${sounding} samples of 960 were heard`);
  assert.deepEqual(eventTypes(core), ["started", "finished"]);
  assert.equal(core.events[1].seconds, 480 / RATE);
  assert.equal(core.report().underruns, 0);
  assert.equal(core.state, "idle");
});

test("all samples of an utterance are played, at every device rate", () => {
  for (const outputRate of [8_000, 16_000, 24_000, 44_100, 48_000, 96_000]) {
    const core = player({ outputRate });
    core.begin("a");
    core.write(tone(RATE));
    core.end();
    let quanta = 0;
    while (core.state !== "idle" || quanta === 0) {
      play(core, 1);
      quanta += 1;
      assert.ok(quanta < 3000, "it never ends");
    }
    const seconds = (quanta * QUANTUM) / outputRate;
    assert.ok(Math.abs(seconds - 1) < 0.02, `${seconds} s at ${outputRate} Hz`);
    assert.equal(core.events.at(-1).seconds, 1);
  }
});

test("an underrun is faded, counted and costs no sample", () => {
  const core = player({ startSeconds: 0.06 });
  core.begin("a");
  core.write(constant(0.1 * RATE));
  const before = play(core, 60);
  assert.equal(core.state, "filling");
  assert.ok(largestStep(before.subarray(300)) < 0.01, `a step of ${largestStep(before.subarray(300))} clicks`);
  const report = core.report();
  assert.equal(report.underruns, 1);
  assert.ok(report.silentSeconds > 0.03);
  assert.equal(core.events.filter((event) => event.type === "underrun").length, 1);
  core.write(constant(0.9 * RATE));
  core.end();
  const after = play(core, 400);
  assert.ok(largestStep(after.subarray(0, 300 * QUANTUM)) < 0.01);
  assert.equal(core.events.at(-1).type, "finished");
  assert.equal(core.events.at(-1).seconds, 1, "what waited during the underrun was played too");
});

test("after an underrun more is collected before it goes on", () => {
  const core = player({ startSeconds: 0.06 });
  core.begin("a");
  core.write(constant(0.1 * RATE));
  play(core, 60);
  assert.ok(core.report().startSeconds > 0.06);
  core.write(constant(0.062 * RATE));
  assert.ok(isSilent(play(core, 5)));
});

test("utterances without an underrun bring the starting level back", () => {
  const core = player({ startSeconds: 0.06 });
  core.begin("rough");
  for (let round = 0; round < 3; round += 1) {
    core.write(constant(0.25 * RATE));
    play(core, 200);
  }
  core.end();
  play(core, 2);
  const raised = core.report().startSeconds;
  assert.ok(raised > 0.19);
  for (let round = 0; round < 6; round += 1) {
    core.begin(`smooth ${round}`);
    core.write(constant(0.3 * RATE));
    core.end();
    play(core, 150);
  }
  assert.equal(core.report().underruns, 3);
  assert.equal(core.report().startSeconds, 0.06);
});

test("starting levels stop growing", () => {
  const core = player({ startSeconds: 0.06, longestStartSeconds: 0.2 });
  core.begin("a");
  for (let round = 0; round < 10; round += 1) {
    core.write(constant(0.25 * RATE));
    play(core, 200);
  }
  assert.equal(core.report().startSeconds, 0.2);
  assert.equal(core.report().underruns, 10);
});

test("a flush is silent within one quantum, without a click", () => {
  const core = player();
  core.begin("a");
  core.write(constant(RATE));
  const before = play(core, 40);
  core.flush();
  const during = play(core, 1);
  assert.ok(during[0] > 0.4, "it fades and does not stop dead");
  assert.ok(Math.abs(during.at(-1)) < 1e-6);
  assert.ok(largestStep(Float32Array.from([before.at(-1), ...during])) < 0.01);
  assert.ok(isSilent(play(core, 50)));
  assert.equal(core.state, "idle");
});

test("a flush says how much of each utterance was heard", () => {
  const core = player();
  core.begin("first");
  core.write(constant(RATE));
  core.end();
  core.begin("second");
  core.write(constant(RATE));
  play(core, 150);
  core.flush();
  play(core, 1);
  const flushed = core.events.filter((event) => event.type === "flushed");
  assert.deepEqual(flushed.map((event) => event.segment), ["first", "second"]);
  const expected = (151 * QUANTUM) / 48_000;
  assert.ok(Math.abs(flushed[0].seconds - expected) < 0.002, `${flushed[0].seconds} s and not ${expected}`);
  assert.equal(flushed[1].seconds, 0);
});

test("a flush before anything is heard drops it", () => {
  const core = player();
  core.begin("a");
  core.write(constant(100));
  core.flush();
  assert.ok(isSilent(play(core, 3)));
  assert.deepEqual(core.events, [{ type: "flushed", segment: "a", seconds: 0 }]);
});

test("what comes after a flush is heard from its beginning", () => {
  const core = player();
  core.begin("a");
  core.write(constant(RATE));
  play(core, 20);
  core.flush();
  core.begin("b");
  core.write(constant(0.1 * RATE));
  core.end();
  play(core, 60);
  assert.deepEqual(eventTypes(core), ["started", "flushed", "started", "finished"]);
  assert.deepEqual(core.events.at(-1), { type: "finished", segment: "b", seconds: 0.1 });
});

test("sound without an utterance is not taken", () => {
  const core = player();
  assert.equal(core.write(constant(10)), 0);
  core.begin("a");
  core.end();
  assert.equal(core.write(constant(10)), 0);
  play(core, 2);
  assert.equal(core.state, "idle");
});

test("waiting for the next utterance is no underrun", () => {
  const core = player();
  core.begin("first");
  core.write(constant(0.1 * RATE));
  core.end();
  core.begin("second");
  core.write(constant(0.01 * RATE));
  play(core, 80);
  assert.equal(core.report().underruns, 0);
  assert.deepEqual(eventTypes(core), ["started", "finished"]);
  core.write(constant(0.1 * RATE));
  core.end();
  play(core, 80);
  assert.deepEqual(eventTypes(core), ["started", "finished", "started", "finished"]);
  assert.ok(Math.abs(core.events.at(-1).seconds - 0.11) < 1e-9);
});

test("a full buffer plays on and takes more when there is room", () => {
  const core = player({ capacitySeconds: 0.05, startSeconds: 0.06 });
  core.begin("a");
  const taken = core.write(constant(RATE));
  assert.ok(taken < 0.05 * RATE);
  assert.equal(core.room, 0);
  assert.ok(!isSilent(play(core, 4)), "a buffer smaller than the starting level still starts");
  assert.ok(core.room > 0);
});

test("the position follows the sound", () => {
  const core = player();
  core.begin("a");
  core.write(constant(RATE));
  let last = -1;
  for (let round = 0; round < 100; round += 1) {
    play(core, 1);
    const { seconds, segment } = core.report();
    assert.equal(segment, "a");
    assert.ok(seconds >= last);
    last = seconds;
  }
  assert.ok(Math.abs(last - (100 * QUANTUM) / 48_000) < 0.002);
});

test("the level is that of the sound since the last report", () => {
  const core = player();
  core.begin("a");
  core.write(constant(RATE, 0.5));
  play(core, 40);
  core.report();
  play(core, 10);
  assert.ok(Math.abs(core.report().level - 0.5) < 0.01);
  assert.equal(core.report().level, 0);
});
