/** One bar for each utterance: where the time went. */

import { byId, make, milliseconds } from "../dom.js";
import { inOrder, nameOf } from "./stage-names.js";

const SHOWN = 8;
/** At most this part of a bar is for what was played; the wait is what there is to see. */
const PLAYED_SHARE = 0.4;

export class Timelines {
  #list = byId("timelines");
  #legend = byId("timeline-legend");
  #empty = byId("timeline-empty");

  /** @param {import("../measure/utterance.js").Utterance[]} utterances Newest first. */
  show(utterances) {
    const shown = utterances.slice(0, SHOWN);
    this.#empty.hidden = shown.length > 0;
    const names = new Set(shown.flatMap((utterance) => utterance.spans().map((span) => span.name)));
    this.#legend.replaceChildren(...inOrder(names).map((name) => make("li", { "data-span": name }, nameOf(name))));
    this.#legend.hidden = names.size === 0;
    const longest = Math.max(1, ...shown.map(waitOf));
    this.#list.replaceChildren(...shown.map((utterance) => row(utterance, longest)));
  }
}

/** Everything up to the first sample that was heard. */
function waitOf(utterance) {
  return Math.max(0, ...utterance.spans().filter((span) => span.name !== "played").map((span) => span.end));
}

function row(utterance, longest) {
  const spans = utterance.spans();
  const head = make(
    "div",
    { class: "timeline-head" },
    make("span", { class: "timeline-text", dir: "auto" }, utterance.text || "…"),
    make("span", { class: "timeline-figures" }, summary(utterance)),
  );
  const track = make("div", { class: "track", role: "img", "aria-label": describe(spans) || "Waiting" });
  const scale = (1 - PLAYED_SHARE) / longest;
  for (const span of spans) track.append(bar(span, scale));
  return make("li", {}, head, track);
}

function bar(span, scale) {
  const element = make("span", { class: "span", "data-span": span.name, title: `${nameOf(span.name)}: ${milliseconds(span.end - span.start)}` });
  element.style.insetInlineStart = `${100 * span.start * scale}%`;
  element.style.width = span.name === "played" ? "100%" : `${100 * (span.end - span.start) * scale}%`;
  return element;
}

function describe(spans) {
  return spans.map((span) => `${nameOf(span.name)} ${milliseconds(span.end - span.start)}`).join(", ");
}

const OUTCOMES = { running: "speaking", finished: "heard", interrupted: "interrupted", failed: "failed" };

function summary(utterance) {
  const parts = [];
  if (utterance.firstSoundMilliseconds !== null) parts.push(`first sound ${milliseconds(utterance.firstSoundMilliseconds)}`);
  if (utterance.soundSeconds > 0) parts.push(`${utterance.soundSeconds.toFixed(1)} s ${OUTCOMES[utterance.outcome]}`);
  else parts.push(OUTCOMES[utterance.outcome]);
  if (utterance.underruns > 0) parts.push(utterance.underruns === 1 ? "1 underrun" : `${utterance.underruns} underruns`);
  return parts.join(" · ");
}
