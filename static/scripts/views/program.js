/** Shows the programs that ask for the same as the page does. */

import { curlCommand, pythonProgram } from "../api/snippets.js";
import { address } from "../api/http.js";
import { speechBody } from "../api/speech.js";
import { byId } from "../dom.js";

const MAKERS = { curl: curlCommand, python: pythonProgram };

export class ProgramPanel {
  #speak;
  #services;
  #language = "curl";

  /**
   * @param {import("./speak.js").SpeakView} speak
   * @param {import("../main.js").Services} services
   */
  constructor(speak, services) {
    this.#speak = speak;
    this.#services = services;
    for (const language of Object.keys(MAKERS)) {
      byId(`program-${language}`).addEventListener("click", () => {
        this.#language = language;
        this.#show();
      });
    }
    byId("program-copy").addEventListener("click", () => this.#copy());
    speak.route.element.addEventListener("wish", () => this.#show());
    services.key.addEventListener("change", () => this.#show());
    this.#show();
  }

  #show() {
    for (const language of Object.keys(MAKERS)) {
      byId(`program-${language}`).setAttribute("aria-pressed", String(language === this.#language));
    }
    byId("program-text").textContent = this.#program();
  }

  #program() {
    const base = address("").href.replace(/\/$/, "");
    const { format, wish } = this.#speak;
    return MAKERS[this.#language](base, speechBody(wish, format), `speech.${format}`, this.#services.key.value !== "");
  }

  async #copy() {
    const button = byId("program-copy");
    try {
      await navigator.clipboard.writeText(this.#program());
      button.textContent = "Copied";
      this.#services.notices.announce("The program was copied.");
    } catch {
      getSelection().selectAllChildren(byId("program-text"));
      button.textContent = "Selected";
    }
    setTimeout(() => {
      button.textContent = "Copy";
    }, 1800);
  }
}
