/** The output worklet: hands samples to the core and tells the page what was played. */

import { toFloat } from "./pcm.js";
import { PlayerCore } from "./player-core.js";

const REPORT_SECONDS = 0.02;

class Player extends AudioWorkletProcessor {
  #core;
  #nextReport = 0;

  constructor({ processorOptions }) {
    super();
    this.#core = new PlayerCore({ outputRate: sampleRate, ...processorOptions });
    this.port.onmessage = ({ data }) => this.#obey(data);
  }

  #obey({ command, segment, samples }) {
    if (command === "begin") this.#core.begin(segment);
    else if (command === "write") this.#core.write(toFloat(samples));
    else if (command === "end") this.#core.end();
    else if (command === "flush") this.#core.flush();
  }

  process(_inputs, [output]) {
    this.#core.render(output[0]);
    for (const channel of output.slice(1)) channel.set(output[0]);
    const events = this.#core.events.splice(0);
    if (events.length > 0 || currentTime >= this.#nextReport) {
      this.#nextReport = currentTime + REPORT_SECONDS;
      this.port.postMessage({ events, report: this.#core.report(), time: currentTime });
    }
    return true;
  }
}

registerProcessor("antiphon-player", Player);
