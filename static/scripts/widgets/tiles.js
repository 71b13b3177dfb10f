/** Tiles with one figure each. */

import { make } from "../dom.js";

/**
 * @param {HTMLElement} list A description list.
 * @param {import("../views/watch-figures.js").Tile[]} tiles
 */
export function showTiles(list, tiles) {
  while (list.childElementCount < tiles.length) {
    list.append(make("div", { class: "tile" }, make("dt"), make("dd", { class: "figure" }), make("dd", { class: "note" })));
  }
  tiles.forEach((tile, index) => fill(list.children[index], tile));
}

function fill(element, { label, figure, unit = "", note = "", good }) {
  const [title, value, remark] = element.children;
  const text = `${label}|${figure}|${unit}|${note}|${good}`;
  if (element.dataset.text === text) return;
  element.dataset.text = text;
  title.textContent = label;
  value.replaceChildren(figure, make("small", {}, unit));
  remark.textContent = note;
  if (good === undefined) delete element.dataset.good;
  else element.dataset.good = String(good);
}
