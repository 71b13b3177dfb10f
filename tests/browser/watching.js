// Runs in the page before its own scripts: notes what tests want to know and changes nothing.
(() => {
  const seen = { violations: [], reports: [], frames: [], sockets: [], lit: [], microphones: [], contexts: [] };
  window.seen = seen;
  addEventListener("securitypolicyviolation", (event) => seen.violations.push(`${event.violatedDirective}: ${event.blockedURI}`));

  const Node = window.AudioWorkletNode;
  window.AudioWorkletNode = class extends Node {
    constructor(context, name, options) {
      super(context, name, options);
      if (name !== "antiphon-player") return;
      this.port.addEventListener("message", ({ data }) =>
        seen.reports.push({ at: performance.now(), level: data.report.level, underruns: data.report.underruns, events: data.events }),
      );
    }
  };

  const Context = window.AudioContext;
  window.AudioContext = class extends Context {
    constructor(options) {
      super(options);
      seen.contexts.push(this);
    }
  };

  const Socket = window.WebSocket;
  window.WebSocket = class extends Socket {
    constructor(...parameters) {
      super(...parameters);
      seen.sockets.push(this);
      this.addEventListener("message", ({ data }) => {
        const event = JSON.parse(data);
        seen.frames.push({ at: performance.now(), type: event.type });
      });
    }
  };

  const devices = navigator.mediaDevices;
  const ask = devices?.getUserMedia.bind(devices);
  if (ask) {
    devices.getUserMedia = async (constraints) => {
      const stream = await ask(constraints);
      seen.microphones.push(stream.getAudioTracks()[0]);
      return stream;
    };
  }

  new MutationObserver((changes) => {
    for (const { target } of changes) {
      if (target.dataset?.heard === "now") seen.lit.push(target.textContent);
    }
  }).observe(document, { subtree: true, attributes: true, attributeFilter: ["data-heard"] });
})();
