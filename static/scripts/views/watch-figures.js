/** The figures of the Watch view. */

import { milliseconds } from "../dom.js";
import { quantile } from "../measure/statistics.js";

/** @typedef {{label: string, figure: string, unit?: string, note?: string, good?: boolean}} Tile */

/**
 * What the listener got.
 * @param {import("../measure/recorder.js").Recorder} recorder
 * @param {import("../audio/output.js").AudioOutput | null} output
 * @returns {Tile[]}
 */
export function listenerTiles(recorder, output) {
  const { utterances } = recorder;
  const waits = utterances.map((utterance) => utterance.firstSoundMilliseconds).filter((wait) => wait !== null);
  const gaps = utterances.flatMap((utterance) => utterance.gaps);
  const paces = utterances.map((utterance) => utterance.timesRealTime).filter((pace) => pace !== null);
  const underruns = utterances.reduce((sum, utterance) => sum + utterance.underruns, 0);
  const count = waits.length === 1 ? "1 utterance" : `${waits.length} utterances`;
  return [
    { label: "First sound, last", ...split(milliseconds(waits[0] ?? null)), note: "from the request to the first sample" },
    { label: "First sound, median", ...split(milliseconds(quantile(waits, 0.5))), note: `of ${count}` },
    { label: "Longest gap", ...split(milliseconds(quantile(gaps, 1))), note: `of ${gaps.length} between pieces` },
    { label: "Made at", ...(paces.length > 0 ? { figure: `${quantile(paces, 0.5).toFixed(1)}×`, unit: "real time" } : { figure: "–" }), note: "median" },
    { label: "Underruns", figure: String(underruns), note: silence(output), ...(utterances.length > 0 ? { good: underruns === 0 } : {}) },
    { label: "Buffered now", ...split(milliseconds(output === null ? null : 1000 * output.bufferedSeconds)), note: "ahead of the ear" },
  ];
}

function silence(output) {
  const lost = output?.report.silentSeconds ?? 0;
  return lost > 0 ? `${milliseconds(1000 * lost)} of silence` : "no silence within speech";
}

/**
 * How the server is.
 * @param {{running: number, waiting: number} | null} readiness
 * @param {import("../api/metrics.js").Metrics} metrics
 * @param {import("../api/metrics.js").Metrics | null} before
 * @param {number} elapsed Seconds since `before`.
 * @returns {Tile[]}
 */
export function loadTiles(readiness, metrics, before, elapsed) {
  const rate = (name) => (before === null || elapsed <= 0 ? null : (metrics.sum(name) - before.sum(name)) / elapsed);
  const mean = (name) => {
    const count = metrics.sum(`${name}_count`);
    return count > 0 ? metrics.sum(`${name}_sum`) / count : null;
  };
  const processors = rate("process_cpu_seconds_total");
  const lag = recentMean(metrics, before, "antiphon_event_loop_lag_seconds");
  const factor = mean("antiphon_real_time_factor");
  return [
    { label: "Running", figure: String(readiness?.running ?? 0), note: `${readiness?.waiting ?? 0} waiting` },
    { label: "Processor", figure: processors === null ? "–" : processors.toFixed(2), unit: "cores" },
    { label: "Memory", figure: (metrics.sum("process_resident_memory_bytes") / 2 ** 30).toFixed(2), unit: "GiB" },
    { label: "Event loop lag", ...split(milliseconds(lag === null ? null : 1000 * lag)), note: "mean, just now" },
    { label: "Real-time factor", figure: factor === null ? "–" : factor.toFixed(2), note: "mean since the start" },
    { label: "Speech made", ...split(duration(metrics.sum("antiphon_audio_seconds_total"))), note: `${metrics.sum("antiphon_requests_finished_total")} requests` },
  ];
}

function recentMean(metrics, before, name) {
  const grown = (suffix) => metrics.sum(name + suffix) - (before?.sum(name + suffix) ?? 0);
  return grown("_count") > 0 ? grown("_sum") / grown("_count") : null;
}

function duration(total) {
  if (total < 120) return `${total.toFixed(0)} s`;
  return total < 7200 ? `${(total / 60).toFixed(0)} min` : `${(total / 3600).toFixed(1)} h`;
}

/** Parts a figure from its unit. */
function split(text) {
  const [figure, unit] = text.split(" ");
  return unit === undefined ? { figure } : { figure, unit };
}
