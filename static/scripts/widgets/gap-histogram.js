/** How long the page waited between two pieces of sound. */

import { make } from "../dom.js";
import { histogram } from "../measure/statistics.js";

const EDGES = [20, 50, 100, 150, 200, 300, 500, 1000];
const LABELS = [...EDGES.map((edge) => (edge < 1000 ? `≤${edge}` : "≤1 s")), ">1 s"];

/**
 * @param {HTMLElement} element
 * @param {number[]} gaps Milliseconds.
 */
export function showGaps(element, gaps) {
  const counts = histogram(gaps, EDGES);
  const most = Math.max(1, ...counts);
  element.replaceChildren(...counts.map((count, index) => bin(count, count / most, LABELS[index])));
  const told = counts.flatMap((count, index) => (count > 0 ? [`${count} of ${LABELS[index]}`] : []));
  element.setAttribute("aria-label", gaps.length === 0 ? "No gaps measured yet" : `Gaps in milliseconds: ${told.join(", ")}`);
}

function bin(count, share, label) {
  const pillar = make("i");
  const figure = make("b", {}, count > 0 ? String(count) : "");
  pillar.style.height = `${85 * share}%`;
  figure.style.insetBlockEnd = `calc(${85 * share}% + 2px)`;
  return make("div", { class: "bin" }, make("div", {}, pillar, figure), make("span", {}, label));
}
