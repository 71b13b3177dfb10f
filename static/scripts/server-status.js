/** Asks the server now and then whether it is ready, and shows the answer. */

import { address } from "./api/http.js";
import { byId } from "./dom.js";

const SOON = 2000;
const LATER = 20_000;

/** Dispatches `ready` when the server becomes ready, and `change` when what the page shows of it changes. */
export class ServerStatus extends EventTarget {
  /** The last answer of `/ready`, or null. */
  readiness = null;
  /** @type {"unknown" | "ready" | "starting" | "unreachable"} */
  state = "unknown";
  #chip = byId("server-status");
  #text = byId("server-status-text");
  #timer = 0;

  constructor() {
    super();
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.ask();
    });
    this.ask();
  }

  /** Whether the server serves requests, as far as is known. */
  get ready() {
    return this.readiness?.ready === true;
  }

  /** Asks now. */
  async ask() {
    clearTimeout(this.#timer);
    const wasReady = this.ready;
    try {
      const response = await fetch(address("ready"), { cache: "no-store" });
      this.readiness = await response.json();
      if (this.ready) this.#show("ready", "Ready");
      else this.#show("starting", this.#startingText());
    } catch {
      this.readiness = null;
      this.#show("unreachable", "Not reachable");
    }
    if (this.ready && !wasReady) this.dispatchEvent(new Event("ready"));
    // A page in the background need not know; it asks when it is looked at again.
    if (!document.hidden) this.#timer = setTimeout(() => this.ask(), this.ready ? LATER : SOON);
  }

  #startingText() {
    const { status, step } = this.readiness;
    return step && step !== status ? `Starting: ${step}` : "Starting";
  }

  #show(state, text) {
    if (this.state === state && this.#text.textContent === text) return;
    this.state = state;
    this.#chip.dataset.state = state;
    this.#text.textContent = text;
    this.dispatchEvent(new Event("change"));
  }
}
