/** Reads server-sent events out of text that arrives in arbitrary pieces. */
export class EventReader {
  #rest = "";
  #name = "";
  #data = [];

  /**
   * @param {string} text More of the stream.
   * @returns {{name: string, data: string}[]} The events that are complete now.
   */
  read(text) {
    const events = [];
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop();
    for (const raw of lines) {
      const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
      if (line === "") this.#finish(events);
      else this.#field(line);
    }
    return events;
  }

  #field(line) {
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#name = value;
  }

  #finish(events) {
    if (this.#data.length > 0) events.push({ name: this.#name || "message", data: this.#data.join("\n") });
    this.#name = "";
    this.#data = [];
  }
}
