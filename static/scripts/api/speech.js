/** `POST /v1/audio/speech` as a stream of samples and words. */

import { fromBase64, SampleJoiner } from "../audio/pcm.js";
import { ApiProblem, request } from "./http.js";
import { EventReader } from "./server-sent-events.js";
import { parseServerTiming } from "./server-timing.js";

/** @typedef {{text: string, voice: string, speed: number, seed?: number}} SpeechWish */

/**
 * The body of a speech request as the API takes it.
 * @param {SpeechWish} wish
 * @param {string} format
 */
export function speechBody({ text, voice, speed, seed }, format) {
  const body = { model: "tts-1", input: text, voice, response_format: format };
  if (speed !== 1) body.speed = speed;
  if (seed !== undefined) body.seed = seed;
  return body;
}

/**
 * Speaks a text. Yields `{type: "headers", requestId, timings, warning}`, then `{type: "word", word}` and `{type: "sound", samples}` as
 * they arrive, and `{type: "done", usage}` at the end.
 * @param {SpeechWish} wish
 * @param {{key?: string, signal?: AbortSignal}} [options]
 */
export async function* streamSpeech(wish, options = {}) {
  const json = { ...speechBody(wish, "pcm"), stream_format: "sse", timestamps: "word" };
  const response = await request("v1/audio/speech", { ...options, json });
  yield {
    type: "headers",
    requestId: response.headers.get("X-Request-Id"),
    timings: parseServerTiming(response.headers.get("Server-Timing") ?? ""),
    warning: response.headers.get("X-Antiphon-Warning"),
  };
  const joiner = new SampleJoiner();
  let done = false;
  for await (const event of eventsOf(response)) {
    if (event.type === "speech.audio.delta") yield { type: "sound", samples: joiner.join(fromBase64(event.audio)) };
    else if (event.type === "speech.word") yield { type: "word", word: event };
    else if (event.type === "error") throw new ApiProblem(event.error.message, { code: event.error.code });
    else if (event.type === "speech.audio.done") {
      done = true;
      yield { type: "done", usage: event.usage };
    }
  }
  if (!done) throw new ApiProblem("The connection was lost before the speech was complete.");
}

async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const events = new EventReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      for (const { data } of events.read(value)) yield JSON.parse(data);
    }
  } catch (failure) {
    if (failure.name === "AbortError") throw failure;
    throw new ApiProblem("The connection was lost before the speech was complete.");
  } finally {
    reader.cancel().catch(() => {});
  }
}

/**
 * Fetches a whole utterance as a file.
 * @param {SpeechWish} wish
 * @param {string} format
 * @param {{key?: string, signal?: AbortSignal}} [options]
 * @returns {Promise<Blob>}
 */
export async function fetchSpeech(wish, format, options = {}) {
  const json = { ...speechBody(wish, format), stream: false };
  const response = await request("v1/audio/speech", { ...options, json });
  return response.blob();
}
