/** Messages for the person: visible ones that can be acted on, and quiet ones for screen readers. */

import { byId, make } from "./dom.js";

export class Notices {
  #list = byId("notices");
  #announcements = byId("announcements");
  #shown = new Map();

  /**
   * Shows a message until it is dismissed or withdrawn; a newer one of the same topic takes its place.
   * @param {string} topic
   * @param {string} text
   * @param {{kind?: "problem" | "hint", action?: string, onAction?: () => void}} [options]
   */
  show(topic, text, { kind = "problem", action, onAction } = {}) {
    const notice = make("div", { class: "notice", "data-kind": kind, "data-topic": topic }, make("p", {}, text));
    const button = (label, act) => {
      const element = make("button", { type: "button", class: "quiet small" }, label);
      element.addEventListener("click", () => {
        this.withdraw(topic);
        act?.();
      });
      notice.append(element);
    };
    if (action) button(action, onAction);
    button("Dismiss");
    this.withdraw(topic);
    this.#shown.set(topic, notice);
    this.#list.append(notice);
  }

  /** Takes a message back. @param {string} topic */
  withdraw(topic) {
    this.#shown.get(topic)?.remove();
    this.#shown.delete(topic);
  }

  /** Says something to screen readers alone. @param {string} text */
  announce(text) {
    this.#announcements.append(make("p", {}, text));
    while (this.#announcements.childElementCount > 8) this.#announcements.firstElementChild.remove();
  }
}
