import assert from "node:assert/strict";
import { test } from "node:test";

import { Recorder } from "../../static/scripts/measure/recorder.js";
import { histogram, quantile } from "../../static/scripts/measure/statistics.js";
import { Utterance } from "../../static/scripts/measure/utterance.js";
import { WordTrack, tokensOf } from "../../static/scripts/widgets/word-track.js";

test("quantiles and histograms", () => {
  assert.equal(quantile([], 0.5), null);
  assert.equal(quantile([3, 1, 2], 0.5), 2);
  assert.equal(quantile([3, 1, 2], 0.9), 3);
  assert.deepEqual(histogram([1, 10, 11, 99], [10, 20]), [2, 1, 1]);
});

const SERVED = {
  opened_at_ms: 5,
  first_audio_at_ms: 90,
  first_sent_at_ms: 100,
  stages: [
    { stage: "talker", first_step_at_ms: 8, queue_ms: 2 },
    { stage: "code2wav", first_step_at_ms: 67, queue_ms: 2 },
  ],
};
const ends = (utterance) => utterance.spans().map(({ name, end }) => [name, end]);

test("an utterance's timeline is gapless and ends where it ended", () => {
  const utterance = new Utterance("a", "speak", "Hello", 1000);
  utterance.arrived(1140, 0.2);
  utterance.arrived(1200, 0.3);
  utterance.played(1210);
  utterance.ended(1900, "finished");
  utterance.served = SERVED;
  const spans = utterance.spans();
  assert.deepEqual(ends(utterance), [["admission", 5], ["talker", 65], ["code2wav", 90], ["server", 100], ["network", 140], ["buffered", 210], ["played", 900]]);
  assert.equal(spans[0].start, 0);
  spans.slice(1).forEach((span, index) => assert.equal(span.start, spans[index].end));
  assert.equal(utterance.firstSoundMilliseconds, 140);
  assert.deepEqual(utterance.gaps, [60]);
  assert.equal(utterance.timesRealTime, 2.5);
});

test("what passed before the server's request is the ear's in a conversation", () => {
  const utterance = new Utterance("a", "talk", "Hello", 1000);
  utterance.before = "ear";
  utterance.arrived(1300, 0.2);
  utterance.served = { ...SERVED, stages: [{ stage: "thinker", first_step_at_ms: 7, queue_ms: 2 }, ...SERVED.stages.map((one) => ({ ...one, first_step_at_ms: one.first_step_at_ms + 10 }))] };
  assert.deepEqual(ends(utterance), [["ear", 200], ["admission", 205], ["thinker", 216], ["talker", 275], ["code2wav", 290], ["server", 300]]);
});

test("a server's figures never reach past what the page saw", () => {
  const utterance = new Utterance("a", "speak", "Hello", 0);
  utterance.answered([{ name: "first-audio", milliseconds: 400 }]);
  utterance.arrived(60, 0.1);
  assert.deepEqual(ends(utterance), [["server", 60]]);
  utterance.served = SERVED;
  assert.deepEqual(ends(utterance), [["admission", 5], ["talker", 60]]);
});

test("a server that knows no stages is believed as far as its header goes", () => {
  const utterance = new Utterance("a", "speak", "Hello", 0);
  utterance.answered([{ name: "first-audio", milliseconds: 40 }]);
  utterance.arrived(60, 0.1);
  utterance.served = { ...SERVED, first_audio_at_ms: null };
  assert.deepEqual(ends(utterance), [["server", 40], ["network", 60]]);
});

test("the recorder keeps the newest and ends an utterance once", () => {
  let now = 0;
  const recorder = new Recorder(() => now);
  const output = Object.assign(new EventTarget(), { latencySeconds: 0.01, bufferedSeconds: 0.5, report: { state: "playing" } });
  recorder.follow(output);
  for (let index = 0; index < 30; index += 1) recorder.begin(`u${index}`, "speak", "x");
  assert.equal(recorder.utterances.length, 20);
  assert.equal(recorder.find("u3"), null);
  const tell = (type) => output.dispatchEvent(Object.assign(new Event(type), { detail: { segment: "u29", seconds: 0 } }));
  now = 100;
  tell("started");
  tell("underrun");
  now = 200;
  tell("flushed");
  now = 300;
  tell("finished");
  const utterance = recorder.find("u29");
  assert.equal(utterance.playedAt, 110);
  assert.equal(utterance.underruns, 1);
  assert.equal(utterance.outcome, "interrupted");
  assert.equal(utterance.endedAt, 200);
  output.dispatchEvent(new Event("report"));
  assert.deepEqual(recorder.buffered, [500]);
});

test("words light up in order, also where one is spoken as several", () => {
  const track = new WordTrack("Call 1,234 now.");
  assert.deepEqual(track.tokens.map((token) => token.text), ["Call", "1,234", "now."]);
  track.add({ start: 0.1, start_character: 0, end_character: 4 });
  track.add({ start: 0.4, start_character: 5, end_character: 10 });
  track.add({ start: 0.7, start_character: 5, end_character: 10 });
  track.add({ start: 1.0, start_character: 11, end_character: 14 });
  assert.deepEqual([0, 0.1, 0.5, 0.8, 1.2].map((time) => track.at(time)), [-1, 0, 1, 1, 2]);
});

test("characters beyond the first plane are counted as the server counts them", () => {
  const track = new WordTrack("😀😀 hello");
  track.add({ start: 0, start_character: 3, end_character: 8 });
  assert.equal(track.at(0), 1);
});

test("tokens know where they lie, whatever lies between them", () => {
  assert.deepEqual(tokensOf("  a\n\n بيت "), [
    { text: "a", begin: 2, end: 3 },
    { text: "بيت", begin: 6, end: 9 },
  ]);
  assert.deepEqual(tokensOf(""), []);
});
