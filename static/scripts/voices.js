/** The lists of voices. */

import { request } from "./api/http.js";
import { make } from "./dom.js";
import { keep, recall } from "./preferences.js";

/**
 * Fills every list of voices with those of the server.
 * @param {string} key
 */
export async function fillVoices(key) {
  const { voices } = await (await request("v1/audio/voices", { key })).json();
  for (const select of document.querySelectorAll("select[data-voices]")) fill(select, voices);
}

function fill(select, voices) {
  const chosen = select.value || recall(select.id);
  select.replaceChildren(...voices.map((voice) => make("option", { value: voice.id }, titleOf(voice))));
  if (voices.some((voice) => voice.id === chosen)) select.value = chosen;
  const note = document.getElementById(`${select.id}-note`);
  const describe = () => {
    note.textContent = voices.find((voice) => voice.id === select.value)?.description ?? "";
  };
  if (!select.dataset.kept) {
    select.dataset.kept = "true";
    keep(select, select.id);
  }
  select.onchange = describe;
  describe();
  select.dispatchEvent(new Event("filled", { bubbles: true }));
}

function titleOf({ name }) {
  return name.charAt(0).toUpperCase() + name.slice(1);
}
