/** Small helpers to make and find elements. Text always goes in as text, never as markup. */

/**
 * Finds an element that the page must have.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`The page has no element "${id}".`);
  return element;
}

/**
 * Makes an element.
 * @param {string} name
 * @param {Record<string, string>} [attributes] `class`, `data-…` and the like.
 * @param {...(Node | string)} children
 * @returns {HTMLElement}
 */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/**
 * Milliseconds as a person reads them.
 * @param {number | null} value
 * @returns {string}
 */
export function milliseconds(value) {
  if (value === null) return "–";
  if (value >= 10_000) return `${(value / 1000).toFixed(1)} s`;
  return `${value < 10 ? value.toFixed(1) : Math.round(value).toLocaleString("en")} ms`;
}

/**
 * Seconds as a person reads them.
 * @param {number | null} value
 * @returns {string}
 */
export function seconds(value) {
  return value === null ? "–" : `${value.toFixed(1)} s`;
}
