/** What each stage does, and did for the last utterance. */

import { make, milliseconds } from "../dom.js";
import { dutyOf, nameOf } from "./stage-names.js";

/**
 * @param {HTMLTableElement} table
 * @param {Record<string, string>} states By stage.
 * @param {import("../api/timeline.js").StageTimeline[]} times Of the last utterance.
 */
export function showStages(table, states, times) {
  const stages = [...new Set([...Object.keys(states), ...times.map(({ stage }) => stage)])];
  const rows = stages.map((stage) => row(stage, states[stage], times.find((one) => one.stage === stage)));
  table.tBodies[0].replaceChildren(...rows);
}

function row(stage, state = "–", times) {
  const cells = times === undefined || times.steps === 0 ? new Array(6).fill("–") : figures(times);
  const heading = make("th", { scope: "row" }, nameOf(stage), make("small", {}, dutyOf(stage)));
  return make("tr", {}, heading, ...[state, ...cells].map((cell) => make("td", {}, cell)));
}

function figures({ steps, compute_ms, queue_ms, waited_ms, starved_ms, held_ms }) {
  return [String(steps), ...[compute_ms / steps, queue_ms, waited_ms, starved_ms, held_ms].map(milliseconds)];
}
