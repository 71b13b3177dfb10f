/**
 * Reads a `Server-Timing` header.
 * @param {string} header
 * @returns {{name: string, milliseconds: number, description: string}[]}
 */
export function parseServerTiming(header) {
  return splitOutsideQuotes(header, ",").flatMap((entry) => {
    const [name, ...parameters] = splitOutsideQuotes(entry, ";").map((part) => part.trim());
    if (!name) return [];
    const values = new Map(parameters.map((parameter) => {
      const [key, ...rest] = parameter.split("=");
      return [key.trim().toLowerCase(), unquote(rest.join("=").trim())];
    }));
    return [{ name, milliseconds: Number(values.get("dur")) || 0, description: values.get("desc") ?? "" }];
  });
}

function splitOutsideQuotes(text, separator) {
  const parts = [""];
  let quoted = false;
  let escaped = false;
  for (const letter of text) {
    if (letter === separator && !quoted) {
      parts.push("");
      continue;
    }
    if (letter === '"' && !escaped) quoted = !quoted;
    escaped = letter === "\\" && quoted && !escaped;
    parts[parts.length - 1] += letter;
  }
  return parts;
}

function unquote(value) {
  return value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, "$1") : value;
}
