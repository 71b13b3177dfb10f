/** Where the server's time for one request went. */

import { request } from "./http.js";

/**
 * @typedef {{stage: string, first_input_at_ms: number | null, first_step_at_ms: number | null, first_output_at_ms: number | null,
 *   ended_at_ms: number | null, queue_ms: number, compute_ms: number, transfer_ms: number, starved_ms: number, held_ms: number,
 *   waited_ms: number, steps: number}} StageTimeline
 * @typedef {{id: string, status: string, opened_at_ms: number | null, first_audio_at_ms: number | null,
 *   first_sent_at_ms: number | null, stages: StageTimeline[]}} Timeline
 */

/**
 * Asks the server; also while the request runs.
 * @param {string} id The request's, or a response's.
 * @param {string} key
 * @returns {Promise<Timeline | null>} Null where the server does not know it, or is away.
 */
export async function fetchTimeline(id, key) {
  try {
    const response = await request(`v1/requests/${encodeURIComponent(id)}/timeline`, { key });
    return await response.json();
  } catch {
    return null;
  }
}
