/** What a person chose, kept in the browser from visit to visit. */

const PREFIX = "antiphon.";

/**
 * @param {string} name
 * @returns {string | null}
 */
export function recall(name) {
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    // Storage is forbidden in some private windows; then nothing is kept.
    return null;
  }
}

/**
 * @param {string} name
 * @param {string} value
 */
export function remember(name, value) {
  try {
    localStorage.setItem(PREFIX + name, value);
  } catch {
    // See above.
  }
}

/**
 * Fills a control with what was chosen before and keeps what is chosen from now on.
 * @param {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} control
 * @param {string} name
 */
export function keep(control, name) {
  const isSwitch = control.type === "checkbox";
  const value = recall(name);
  if (value !== null && isSwitch) control.checked = value === "true";
  else if (value !== null) choose(control, value);
  control.addEventListener("change", () => remember(name, isSwitch ? String(control.checked) : control.value));
}

/** Sets a value, unless it is one that a list does not have. */
function choose(control, value) {
  const known = control instanceof HTMLSelectElement ? [...control.options].some((option) => option.value === value) : true;
  if (known) control.value = value;
}
