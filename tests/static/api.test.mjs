import assert from "node:assert/strict";
import { test } from "node:test";

import { Metrics } from "../../static/scripts/api/metrics.js";
import { EventReader } from "../../static/scripts/api/server-sent-events.js";
import { parseServerTiming } from "../../static/scripts/api/server-timing.js";
import { curlCommand, pythonProgram } from "../../static/scripts/api/snippets.js";
import { warningText } from "../../static/scripts/api/warning.js";

test("events survive every way to cut their stream", () => {
  const stream = ': ping\n\nevent: error\ndata: {"a":1}\n\ndata: one\r\ndata: two\r\n\r\ndata:three\n\n';
  const expected = [
    { name: "error", data: '{"a":1}' },
    { name: "message", data: "one\ntwo" },
    { name: "message", data: "three" },
  ];
  for (let size = 1; size <= stream.length; size += 1) {
    const reader = new EventReader();
    const events = [];
    for (let begin = 0; begin < stream.length; begin += size) events.push(...reader.read(stream.slice(begin, begin + size)));
    assert.deepEqual(events, expected);
  }
});

test("an event that is not complete is not told", () => {
  assert.deepEqual(new EventReader().read("data: half\n"), []);
});

test("server timings are read with descriptions and without", () => {
  assert.deepEqual(parseServerTiming('admission;dur=0.4, talker;dur=80.5;desc="steps, 3; \\"fast\\"", miss'), [
    { name: "admission", milliseconds: 0.4, description: "" },
    { name: "talker", milliseconds: 80.5, description: 'steps, 3; "fast"' },
    { name: "miss", milliseconds: 0, description: "" },
  ]);
  assert.deepEqual(parseServerTiming(""), []);
});

const reading = (steps, seconds) =>
  new Metrics(`# HELP antiphon_stage_step_seconds Time.
antiphon_stage_step_seconds_count{stage="talker"} ${steps}
antiphon_stage_step_seconds_sum{stage="talker"} ${seconds}
antiphon_stage_batch_size_count{stage="talker"} ${steps}
antiphon_stage_batch_size_sum{stage="talker"} ${2 * steps}
antiphon_requests_finished_total{reason="done"} 3
antiphon_requests_finished_total{reason="a \\"b\\", c"} 4
antiphon_big 1.5e+09 1795976816952`);

test("metrics are summed over labels", () => {
  const metrics = reading(1, 1);
  assert.equal(metrics.sum("antiphon_requests_finished_total"), 7);
  assert.equal(metrics.sum("antiphon_requests_finished_total", { reason: "done" }), 3);
  assert.equal(metrics.sum("antiphon_big"), 1.5e9);
  assert.equal(metrics.sum("antiphon_none"), 0);
});


const body = { model: "tts-1", input: 'It\'s "here"\n$HOME', voice: "lark", response_format: "mp3" };

test("the shell sees the text as it was written", async () => {
  const command = curlCommand("http://localhost:8000", body, "speech.mp3", true);
  const { execFileSync } = await import("node:child_process");
  const seen = execFileSync("sh", ["-c", `curl() { printf '%s\\n' "$@"; }\n${command}`], { encoding: "utf8" });
  assert.ok(seen.includes(JSON.stringify(body)));
  assert.ok(command.includes("$ANTIPHON_API_KEY"));
  assert.ok(!curlCommand("http://localhost:8000", body, "speech.mp3", false).includes("Authorization"));
});

test("the Python program asks for the same", () => {
  const program = pythonProgram("http://localhost:8000", { ...body, speed: 1.25 }, "speech.mp3", false);
  for (const part of ['voice="lark"', "speed=1.25", '"It\'s \\"here\\"\\n$HOME"', 'stream_to_file("speech.mp3")']) {
    assert.ok(program.includes(part), part);
  }
  assert.ok(!program.includes("import os"));
});

test("a warning is told in words, its characters themselves and not their numbers", () => {
  assert.equal(warningText(null), "");
  assert.equal(
    warningText('left-out; count=1; characters="U+4E16"'),
    "This voice has no sound for one character, which was left out: \u2068世\u2069",
  );
  const many = warningText(`left-out; count=21; characters="${new Array(20).fill("U+1F600").join(" ")}"`);
  assert.match(many, /21 different characters/);
  assert.equal(many.match(/😀/gu).length, 8);
  assert.match(many, /…$/);
  assert.equal(warningText("something new"), "something new");
});
