/** The API key, for servers that want one. It is kept for this tab only. */

import { byId } from "./dom.js";

const NAME = "antiphon.key";

/** Dispatches `change`. */
export class Key extends EventTarget {
  #dialog = byId("key-dialog");
  #field = byId("key-value");
  #value = "";

  constructor() {
    super();
    try {
      this.#value = sessionStorage.getItem(NAME) ?? "";
    } catch {
      // Storage is forbidden; the key lasts as long as the page.
    }
    byId("open-key").addEventListener("click", () => this.ask());
    this.#dialog.addEventListener("close", () => {
      if (this.#dialog.returnValue === "save") this.#set(this.#field.value.trim());
      this.#field.value = "";
    });
  }

  /** The key; empty if there is none. */
  get value() {
    return this.#value;
  }

  /** Asks the person for it. @param {string} [reason] What the server said. */
  ask(reason = "") {
    // Without a key, the dialog itself says all there is to say.
    byId("key-problem").textContent = this.#value === "" ? "" : reason;
    if (!this.#dialog.open) this.#dialog.showModal();
  }

  #set(value) {
    this.#value = value;
    try {
      sessionStorage.setItem(NAME, value);
    } catch {
      // See above.
    }
    this.dispatchEvent(new Event("change"));
  }
}
