/** What each stage does. */

import { make, milliseconds } from "../dom.js";

const NAMES = { thinker: "Thinker", talker: "Talker", code2wav: "Code2Wav" };

/**
 * @param {HTMLTableElement} table
 * @param {Record<string, string>} states By stage.
 * @param {import("../api/metrics.js").StageUse[]} use Of the last utterance.
 */
export function showStages(table, states, use) {
  const stages = [...new Set([...Object.keys(states), ...use.map(({ stage }) => stage)])];
  table.tBodies[0].replaceChildren(...stages.map((stage) => row(stage, states[stage], use.find((one) => one.stage === stage))));
}

function row(stage, state = "–", use) {
  const cells = [state];
  if (use === undefined || use.steps === 0) cells.push("–", "–", "–", "–");
  else cells.push(String(use.steps), milliseconds(1000 * use.stepSeconds), use.batch.toFixed(1), milliseconds(1000 * use.stallSeconds));
  return make("tr", {}, make("th", { scope: "row" }, NAMES[stage] ?? stage), ...cells.map((cell) => make("td", {}, cell)));
}
