/** Watch: how fast the server is and how healthy, at a glance. */

import { readMetrics } from "../api/read-metrics.js";
import { byId } from "../dom.js";
import { BufferChart } from "../widgets/buffer-chart.js";
import { showGaps } from "../widgets/gap-histogram.js";
import { showStages } from "../widgets/stage-table.js";
import { showTiles } from "../widgets/tiles.js";
import { Timelines } from "../widgets/timelines.js";
import { loadTiles, listenerTiles } from "./watch-figures.js";

const SERVER_INTERVAL = 2000;
const PAGE_INTERVAL = 250;

export class WatchView {
  #services;
  #element = byId("view-watch");
  #timelines = new Timelines();
  #chart = new BufferChart(byId("buffer-chart"));
  #metrics = null;
  #metricsAt = 0;
  #timers = [];
  #changed = true;

  /** @param {import("../main.js").Services} services */
  constructor(services) {
    this.#services = services;
    services.recorder.addEventListener("change", () => {
      this.#changed = true;
    });
  }

  /** For the router. */
  get route() {
    return { title: "Watch", element: this.#element, shown: () => this.#start(), hidden: () => this.#stop() };
  }

  #start() {
    this.#changed = true;
    this.#showPage();
    this.#showServer();
    this.#timers = [setInterval(() => this.#showPage(), PAGE_INTERVAL), setInterval(() => this.#showServer(), SERVER_INTERVAL)];
  }

  #stop() {
    for (const timer of this.#timers) clearInterval(timer);
    this.#metrics = null;
  }

  #showPage() {
    if (document.hidden) return;
    const { recorder, sound } = this.#services;
    showTiles(byId("watch-tiles"), listenerTiles(recorder, sound.output));
    this.#chart.show(recorder.buffered);
    if (!this.#changed) return;
    this.#changed = false;
    this.#timelines.show(recorder.utterances);
    showGaps(byId("gaps"), recorder.utterances.flatMap((utterance) => utterance.gaps));
    this.#showStages();
  }

  async #showServer() {
    if (document.hidden) return;
    const { status } = this.#services;
    const [metrics] = await Promise.all([readMetrics(), status.ask()]);
    const now = performance.now();
    if (metrics !== null) {
      const elapsed = this.#metrics === null ? 0 : (now - this.#metricsAt) / 1000;
      showTiles(byId("load-tiles"), loadTiles(status.readiness, metrics, this.#metrics, elapsed));
      this.#metrics = metrics;
      this.#metricsAt = now;
    }
    this.#showStages();
  }

  #showStages() {
    const { recorder, status } = this.#services;
    const measured = recorder.utterances.find((utterance) => utterance.served !== null);
    showStages(byId("stages"), status.readiness?.stages ?? {}, measured?.served.stages ?? []);
  }
}
