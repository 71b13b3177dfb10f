import assert from "node:assert/strict";
import { test } from "node:test";

import { Recorder } from "../../static/scripts/measure/recorder.js";
import { Answers } from "../../static/scripts/realtime/answers.js";
import { MOST_ATTEMPTS, delayBefore } from "../../static/scripts/realtime/backoff.js";
import { Connection } from "../../static/scripts/realtime/connection.js";
import { sessionOf, turnDetection } from "../../static/scripts/realtime/session-settings.js";
import { Transcript } from "../../static/scripts/realtime/transcript.js";
import { TurnClock } from "../../static/scripts/realtime/turn-clock.js";
import { Pace, WordClock } from "../../static/scripts/realtime/word-clock.js";

/** An output that notes what it is told. */
class NotingOutput extends EventTarget {
  told = [];
  latencySeconds = 0.02;
  begin = (segment) => this.told.push(["begin", segment]);
  write = (samples) => this.told.push(["write", samples.length]);
  end = () => this.told.push(["end"]);
  flush = () => this.told.push(["flush"]);
  say(type, segment, seconds = 0) {
    this.dispatchEvent(Object.assign(new Event(type), { detail: { segment, seconds } }));
  }
}

const SOUND = Buffer.alloc(960).toString("base64");
const delta = (response_id, item_id) => ({ type: "response.output_audio.delta", response_id, item_id, delta: SOUND });
const created = (id) => ({ type: "response.created", response: { id } });
const done = (id, status = "completed", reason = undefined) => ({ type: "response.done", response: { id, status, status_details: reason && { reason } } });

function answering() {
  const output = new NotingOutput();
  const sent = [];
  const answers = new Answers(output, (event) => sent.push(event));
  return { output, sent, answers };
}

test("an answer is begun, written and ended", () => {
  const { output, answers } = answering();
  answers.follow(created("r"));
  assert.ok(answers.active);
  answers.follow(delta("r", "i"));
  answers.follow(delta("r", "i"));
  answers.follow({ type: "response.output_audio.done", item_id: "i" });
  answers.follow(done("r"));
  assert.deepEqual(output.told, [["begin", "i"], ["write", 480], ["write", 480], ["end"]]);
  assert.ok(!answers.active && answers.audible, "the server is done long before the ear is");
  output.say("finished", "i");
  assert.ok(!answers.audible);
});

test("an interruption silences at once, drops what still comes and tells what was heard", () => {
  const { output, sent, answers } = answering();
  answers.follow(created("r"));
  answers.follow(delta("r", "i"));
  answers.interrupt({ tell: true });
  assert.deepEqual(output.told.at(-1), ["flush"]);
  assert.deepEqual(sent, [{ type: "response.cancel", response_id: "r" }]);
  const told = output.told.length;
  answers.follow(delta("r", "i"));
  answers.follow({ type: "response.output_audio.done", item_id: "i" });
  assert.equal(output.told.length, told, "not one late sample is played");
  output.say("flushed", "i", 1.2345);
  assert.deepEqual(sent[1], { type: "conversation.item.truncate", item_id: "i", content_index: 0, audio_end_ms: 1214 });
  answers.follow(done("r", "cancelled", "client_cancelled"));
  assert.ok(!answers.audible && !answers.active);
  answers.follow(created("next"));
  answers.follow(delta("next", "j"));
  assert.deepEqual(output.told.slice(-2), [["begin", "j"], ["write", 480]]);
});

test("an answer that the server has long finished can be interrupted", () => {
  const { output, sent, answers } = answering();
  answers.follow(created("r"));
  answers.follow(delta("r", "i"));
  answers.follow({ type: "response.output_audio.done", item_id: "i" });
  answers.follow(done("r"));
  answers.interrupt({ tell: true });
  output.say("flushed", "i", 0.01);
  assert.deepEqual(sent, [{ type: "conversation.item.truncate", item_id: "i", content_index: 0, audio_end_ms: 0 }]);
});

test("an interruption that only the server noticed silences too", () => {
  const { output, answers } = answering();
  answers.follow(created("r"));
  answers.follow(delta("r", "i"));
  answers.follow(done("r", "cancelled", "turn_detected"));
  assert.deepEqual(output.told.at(-1), ["flush"]);
});

test("at the end of a session what is still heard is cut, and a new one is not told of it", () => {
  const { output, sent, answers } = answering();
  const cut = [];
  answers.addEventListener("cut", ({ detail }) => cut.push(detail.item));
  answers.follow(created("r"));
  answers.follow(delta("r", "i"));
  answers.reset();
  output.say("flushed", "i", 1);
  assert.deepEqual(output.told.at(-1), ["flush"]);
  assert.deepEqual([cut, sent], [["i"], []]);
  assert.ok(!answers.active && !answers.audible);
});

test("what another part of the page plays is none of its business", () => {
  const { output, sent } = answering();
  output.say("flushed", "speak-1", 3);
  assert.deepEqual(sent, []);
});

test("an answer is measured from the end of the person's turn", async () => {
  let now = 0;
  const recorder = new Recorder(() => now);
  const asked = [];
  const served = { first_audio_at_ms: 300, opened_at_ms: 10, first_sent_at_ms: 310, stages: [{ stage: "thinker", first_step_at_ms: 12, queue_ms: 2 }, { stage: "talker", first_step_at_ms: 122, queue_ms: 2 }] };
  const answers = [served, null];
  const readTimeline = async (id) => {
    asked.push([id, now]);
    return answers.shift();
  };
  const clock = new TurnClock(recorder, readTimeline, () => now);
  const at = (time, event) => {
    now = time;
    clock.follow(event);
  };
  at(1000, { type: "input_audio_buffer.speech_stopped" });
  at(1100, { type: "response.created", response: { id: "r" } });
  at(1290, { type: "response.output_item.added", response_id: "r", item: { id: "i", type: "message" } });
  at(1300, { type: "response.output_audio_transcript.delta", item_id: "i", delta: "Good morning." });
  at(1450, delta("r", "i"));
  at(1500, delta("r", "i"));
  at(1600, { type: "response.done", response: { id: "r", status: "completed" } });
  await new Promise(setImmediate);
  const utterance = recorder.find("i");
  assert.deepEqual(asked, [["r", 1450], ["r", 1600]]);
  assert.equal(utterance.served, served, "what was known stays, if the server has forgotten it");
  assert.equal(utterance.firstSoundMilliseconds, 450);
  const spans = utterance.spans().map(({ name, end }) => [name, end]);
  assert.deepEqual(spans, [["ear", 140], ["admission", 150], ["thinker", 260], ["talker", 440], ["server", 450]]);
  assert.equal(utterance.text, "Good morning.");
  assert.deepEqual(utterance.gaps, [50]);
});

test("a conversation is read from its events", () => {
  const transcript = new Transcript();
  const events = [
    { type: "input_audio_buffer.speech_started", item_id: "u" },
    { type: "input_audio_buffer.committed", item_id: "u" },
    { type: "conversation.item.added", item: { id: "u", type: "message", role: "user", content: [{ type: "input_audio" }] } },
    { type: "response.output_item.added", response_id: "r", item: { id: "a", type: "message", role: "assistant" } },
    { type: "response.output_audio_transcript.delta", item_id: "a", delta: "Good " },
    { type: "conversation.item.input_audio_transcription.completed", item_id: "u", transcript: " Hello. " },
    { type: "response.output_audio_transcript.delta", item_id: "a", delta: "morning." },
    { type: "response.output_audio_transcript.done", item_id: "a", transcript: "Good" },
    { type: "response.done", response: { id: "r", status: "cancelled" } },
    { type: "session.updated" },
  ];
  for (const event of events) transcript.follow(event);
  assert.deepEqual(
    transcript.turns.map(({ side, text, state }) => [side, text, state]),
    [["you", "Hello.", "done"], ["them", "Good morning.", "interrupted"]],
  );
  assert.deepEqual(transcript.asItems().map((item) => [item.role, item.content[0].text]), [["user", "Hello."], ["assistant", "Good morning."]]);
});

test("what goes wrong is said at the turn", () => {
  const transcript = new Transcript();
  transcript.follow({ type: "conversation.item.input_audio_transcription.failed", item_id: "u", error: { message: "Too loud." } });
  transcript.follow({ type: "response.output_item.added", response_id: "r", item: { id: "a", type: "message" } });
  transcript.follow({ type: "response.done", response: { id: "r", status: "failed", status_details: { error: { message: "It broke." } } } });
  assert.deepEqual(transcript.turns.map(({ state, remark }) => [state, remark]), [["failed", "Too loud."], ["failed", "It broke."]]);
  assert.deepEqual(transcript.asItems(), []);
  transcript.follow({ type: "conversation.item.deleted", item_id: "u" });
  assert.equal(transcript.turns.length, 1);
});

test("words light up evenly over the sound, and all of them by its end", () => {
  const pace = new Pace();
  const clock = new WordClock(pace);
  const words = "One two three, four five six seven eight.".split(" ");
  clock.setWords(words);
  clock.addSound(4000);
  const before = pace.value;
  assert.equal(clock.wordsAt(0), 0);
  assert.equal(clock.wordsAt(1), 1);
  clock.finish();
  assert.notEqual(pace.value, before, "the voice's pace is learnt");
  const counts = Array.from({ length: 41 }, (_, index) => clock.wordsAt(100 * index));
  assert.equal(counts.at(-1), words.length);
  assert.ok(counts[20] >= 3 && counts[20] <= 6);
  counts.slice(1).forEach((count, index) => assert.ok(count >= counts[index]));
});

const settings = { voice: "lark", turns: "semantic", eagerness: "high", silenceMilliseconds: 700, interruptible: true, instructions: "" };

test("settings become a session of the protocol", () => {
  const first = sessionOf(settings, { first: true });
  assert.equal(first.audio.output.voice, "lark");
  assert.deepEqual(first.audio.input.turn_detection, { type: "semantic_vad", eagerness: "high", create_response: true, interrupt_response: true });
  assert.ok(!("instructions" in first));
  const later = sessionOf({ ...settings, turns: "silence", interruptible: false }, { first: false });
  assert.ok(!("output" in later.audio), "a voice that was heard cannot be changed");
  assert.deepEqual(later.audio.input.turn_detection, { type: "server_vad", silence_duration_ms: 700, create_response: true, interrupt_response: false });
  assert.equal(later.instructions, "");
  assert.equal(turnDetection({ ...settings, turns: "manual" }), null);
});

/** A connection with sockets that a test moves. */
function connecting(options = {}) {
  const sockets = [];
  const makeSocket = (url, protocols) => {
    const socket = { url, protocols, readyState: 1, sent: [], send: (text) => socket.sent.push(JSON.parse(text)), close: () => {} };
    sockets.push(socket);
    return socket;
  };
  const connection = new Connection(new URL("ws://server/v1/realtime"), { makeSocket, ...options });
  const seen = [];
  for (const type of ["opened", "lost", "ended"]) connection.addEventListener(type, ({ detail }) => seen.push([type, detail]));
  const say = (event) => sockets.at(-1).onmessage({ data: JSON.stringify(event) });
  return { connection, sockets, seen, say };
}

test("the key goes where browsers can put it", () => {
  const { connection, sockets } = connecting({ key: "secret" });
  connection.open();
  assert.deepEqual(sockets[0].protocols, ["realtime", "openai-insecure-api-key.secret"]);
  assert.equal(sockets[0].url.search, "?resume=1");
});

test("a lost socket comes back to its session, behind the last event", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const { connection, sockets, seen, say } = connecting();
  connection.open();
  say({ type: "session.created", event_id: "e0", session: { resume_token: "token" } });
  say({ type: "session.updated", event_id: "e1" });
  sockets[0].onclose({ code: 1006, reason: "" });
  assert.equal(connection.send({ type: "x" }), false);
  context.mock.timers.tick(1000);
  assert.equal(sockets[1].url.search, "?resume=token&after=e1");
  say({ type: "session.created", event_id: "e9", session: { resume_token: "token" } });
  assert.deepEqual(seen.map(([type, detail]) => [type, detail.resumed]), [["opened", false], ["lost", undefined], ["opened", true]]);
  sockets[0].onclose({ code: 4001, reason: "" });
  assert.equal(seen.length, 3, "the old socket's end means nothing any more");
});

test("after some attempts a new session is begun, and in the end it gives up", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const { connection, sockets, seen, say } = connecting();
  connection.open();
  say({ type: "session.created", session: { resume_token: "token" } });
  for (let round = 0; round <= MOST_ATTEMPTS; round += 1) {
    sockets.at(-1).onclose({ code: 1006, reason: "" });
    context.mock.timers.tick(20_000);
  }
  assert.equal(sockets.length, 1 + MOST_ATTEMPTS);
  assert.match(sockets[1].url.search, /resume=token/);
  assert.equal(sockets.at(-1).url.search, "?resume=1");
  assert.equal(seen.at(-1)[0], "ended");
});

test("a session that the server ended stays ended, and so does one that the page ended", () => {
  const { connection, sockets, seen } = connecting();
  connection.open();
  sockets[0].onclose({ code: 1008, reason: "too slow" });
  assert.deepEqual(seen, [["ended", { code: 1008, reason: "too slow", asked: false }]]);
  const other = connecting();
  other.connection.open();
  other.connection.close();
  other.sockets[0].onclose({ code: 1000, reason: "" });
  assert.deepEqual(other.seen, [["ended", { code: 1000, reason: "", asked: true }]]);
});

test("a key that no browser can send ends it with a word about why", () => {
  const seen = [];
  const makeSocket = () => {
    throw new SyntaxError("not a token");
  };
  const connection = new Connection(new URL("ws://server/v1/realtime"), { key: "a b", makeSocket });
  connection.addEventListener("ended", ({ detail }) => seen.push(detail));
  connection.open();
  assert.match(seen[0].reason, /API key/);
});

test("a server that never answered is not asked for ever", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const { connection, sockets, seen } = connecting();
  connection.open();
  for (let round = 0; round < 3; round += 1) {
    sockets.at(-1).onclose({ code: 1006, reason: "" });
    context.mock.timers.tick(20_000);
  }
  assert.equal(sockets.length, 3);
  assert.equal(seen.at(-1)[0], "ended");
});

test("a network that is gone is not waited for, and its attempts do not count", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  let online = true;
  const { connection, sockets, seen, say } = connecting({ isOnline: () => online });
  connection.drop();
  connection.open();
  connection.drop();
  assert.equal(seen.length, 0, "before there is a session there is nothing to come back to");
  say({ type: "session.created", session: { resume_token: "token" } });
  say({ type: "session.updated", event_id: "e1" });
  online = false;
  connection.drop();
  assert.ok(connection.offline);
  for (let round = 0; round < 3 * MOST_ATTEMPTS; round += 1) {
    context.mock.timers.tick(20_000);
    sockets.at(-1).onclose({ code: 1006, reason: "" });
  }
  assert.ok(seen.every(([type]) => type !== "ended"));
  online = true;
  connection.hurry();
  assert.equal(sockets.at(-1).url.search, "?resume=token&after=e1");
  say({ type: "session.created", session: { resume_token: "token" } });
  assert.deepEqual(seen.at(-1), ["opened", { resumed: true }]);
  assert.ok(!connection.offline);
});

test("waits grow and are spread", () => {
  const middle = (attempt) => delayBefore(attempt, () => 0.5);
  assert.ok(middle(0) < middle(1) && middle(1) < middle(4));
  assert.equal(middle(50), middle(60));
  assert.ok(delayBefore(3, () => 0) < delayBefore(3, () => 1));
});
