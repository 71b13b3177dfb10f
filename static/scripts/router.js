/** Shows the view that the address names. */

const DEFAULT = "talk";

export class Router {
  #views;
  #shown = null;

  /** @param {Record<string, {title: string, element: HTMLElement, shown?: () => void, hidden?: () => void}>} views */
  constructor(views) {
    this.#views = views;
    addEventListener("hashchange", () => this.#show({ moveFocus: true }));
    this.#show({ moveFocus: false });
  }

  #show({ moveFocus }) {
    const wanted = location.hash.slice(1);
    // The link past the navigation is no view.
    if (wanted === "main" && this.#shown !== null) return;
    const name = wanted in this.#views ? wanted : DEFAULT;
    if (name === this.#shown) return;
    if (this.#shown !== null) this.#views[this.#shown].hidden?.();
    this.#shown = name;
    for (const [other, { element }] of Object.entries(this.#views)) element.hidden = other !== name;
    for (const link of document.querySelectorAll("[data-view]")) {
      if (link.dataset.view === name) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    const { title, element, shown } = this.#views[name];
    document.title = `${title} · Antiphon`;
    shown?.();
    if (moveFocus) {
      element.querySelector("h1").focus({ preventScroll: true });
      scrollTo({ top: 0 });
    }
  }
}
