/** From what a person chose to the `session` of the protocol. */

import { SAMPLE_RATE } from "../audio/pcm.js";

/**
 * @typedef {{voice: string, turns: "semantic" | "silence" | "manual", eagerness: string, silenceMilliseconds: number,
 *   interruptible: boolean, instructions: string}} TalkSettings
 */

const PCM = { type: "audio/pcm", rate: SAMPLE_RATE };

/**
 * @param {TalkSettings} settings
 * @returns {object | null} `turn_detection`; null leaves the turns to the person.
 */
export function turnDetection({ turns, eagerness, silenceMilliseconds, interruptible }) {
  const common = { create_response: true, interrupt_response: interruptible };
  if (turns === "manual") return null;
  if (turns === "silence") return { type: "server_vad", silence_duration_ms: silenceMilliseconds, ...common };
  return { type: "semantic_vad", eagerness, ...common };
}

/**
 * @param {TalkSettings} settings
 * @param {{first: boolean}} when The voice is fixed once it was heard, so it is said at first only.
 */
export function sessionOf(settings, { first }) {
  const session = {
    type: "realtime",
    output_modalities: ["audio"],
    audio: { input: { format: PCM, transcription: {}, turn_detection: turnDetection(settings) } },
  };
  if (first) session.audio.output = { format: PCM, voice: settings.voice };
  if (settings.instructions !== "" || !first) session.instructions = settings.instructions;
  return session;
}
