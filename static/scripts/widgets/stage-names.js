/** What the parts of an utterance's time are called. */

const NAMES = {
  admission: "Admission",
  ear: "Ear",
  thinker: "Thinker",
  talker: "Talker",
  code2wav: "Code2Wav",
  server: "Sending",
  network: "Network",
  buffered: "Buffered",
  played: "Played",
};

/** What each stage is for. */
const DUTIES = {
  thinker: "writes the answer",
  talker: "speaks it, in codes",
  code2wav: "makes sound of the codes",
};

/** @param {string} name @returns {string} Empty for a stage that only its pipeline knows. */
export function dutyOf(name) {
  return DUTIES[name] ?? "";
}

/** The order of the parts; a stage that is not named here comes with the stages. */
const ORDER = ["ear", "admission", "thinker", "talker", "", "code2wav", "server", "network", "buffered", "played"];

/** @param {string} name @returns {string} */
export function nameOf(name) {
  return NAMES[name] ?? name.charAt(0).toUpperCase() + name.slice(1);
}

/** @param {Iterable<string>} names @returns {string[]} In the order of time. */
export function inOrder(names) {
  const place = (name) => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.indexOf(""));
  return [...names].sort((one, other) => place(one) - place(other));
}
