/** The response header `X-Antiphon-Warning`, in words for a person. */

const LEFT_OUT = /^left-out; count=(\d+); characters="([^"]*)"$/;
/** So many characters are shown; a text in a foreign script has too many to be read. */
const SHOWN = 8;

/**
 * @param {string | null} header Such as `left-out; count=2; characters="U+4E16 U+754C"`.
 * @returns {string} Empty where there is nothing to say.
 */
export function warningText(header) {
  if (!header) return "";
  const match = LEFT_OUT.exec(header);
  if (match === null) return header;
  const count = Number(match[1]);
  const characters = match[2].split(" ").filter(Boolean).map((code) => String.fromCodePoint(parseInt(code.slice(2), 16)));
  const shown = characters.slice(0, SHOWN).map((character) => `\u2068${character}\u2069`).join(" ");
  const more = count > SHOWN ? " …" : "";
  return count === 1
    ? `This voice has no sound for one character, which was left out: ${shown}`
    : `This voice has no sound for ${count} different characters, which were left out: ${shown}${more}`;
}
