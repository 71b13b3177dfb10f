/** The capture worklet: hands the microphone's sound to the core and its frames to the page. */

import { CaptureCore } from "./capture-core.js";

class Capture extends AudioWorkletProcessor {
  #core;
  #stopped = false;

  constructor() {
    super();
    this.#core = new CaptureCore({ inputRate: sampleRate }, (samples, level) =>
      this.port.postMessage({ samples, level }, [samples.buffer]),
    );
    this.port.onmessage = ({ data }) => {
      if (data.command === "mute") this.#core.muted = data.muted;
      else if (data.command === "stop") this.#stopped = true;
    };
  }

  process([input]) {
    // Without a channel the microphone is not connected yet, or no longer.
    if (input.length > 0) this.#core.process(input[0]);
    return !this.#stopped;
  }
}

registerProcessor("antiphon-capture", Capture);
