/** The microphone: asked for, captured in a worklet, and told about when it goes away. */

const CONSTRAINTS = {
  audio: { channelCount: 1, echoCancellation: true, noiseSuppression: true, autoGainControl: true },
};

const REASONS = {
  NotAllowedError:
    "The microphone is not allowed for this page. Allow it in the browser’s settings of this site, beside its address, and press again. You can also write below.",
  NotFoundError: "There is no microphone. Connect one and press again, or write below.",
  NotReadableError: "The microphone is in use by another program, or the system keeps it back.",
};

/** Why there is no microphone, in words for a person. */
export class MicrophoneProblem extends Error {}

/**
 * Dispatches `frame` with `detail` {samples: Int16Array, level: number}, `lost` when the device goes away and
 * `silenced` or `heard` when the system mutes it or lets it be heard again.
 */
export class Microphone extends EventTarget {
  #stream;
  #source;
  #node;

  /**
   * Asks for the microphone and begins to capture.
   * @param {AudioContext} context
   * @returns {Promise<Microphone>}
   */
  static async open(context) {
    if (!navigator.mediaDevices?.getUserMedia) {
      throw new MicrophoneProblem("Browsers give the microphone only to pages that come over https or from this computer itself.");
    }
    let stream;
    try {
      stream = await navigator.mediaDevices.getUserMedia(CONSTRAINTS);
    } catch (failure) {
      throw new MicrophoneProblem(REASONS[failure.name] ?? `The microphone cannot be used: ${failure.message}`);
    }
    await context.audioWorklet.addModule(new URL("./capture-worklet.js", import.meta.url));
    return new Microphone(context, stream);
  }

  /**
   * @param {AudioContext} context One that has the capture worklet's module.
   * @param {MediaStream} stream
   */
  constructor(context, stream) {
    super();
    this.#stream = stream;
    this.#source = context.createMediaStreamSource(stream);
    this.#node = new AudioWorkletNode(context, "antiphon-capture", { numberOfOutputs: 0, channelCount: 1, channelCountMode: "explicit" });
    this.#source.connect(this.#node);
    this.#node.port.onmessage = ({ data }) => this.dispatchEvent(new CustomEvent("frame", { detail: data }));
    const [track] = stream.getAudioTracks();
    track.addEventListener("ended", () => this.dispatchEvent(new Event("lost")));
    track.addEventListener("mute", () => this.dispatchEvent(new Event("silenced")));
    track.addEventListener("unmute", () => this.dispatchEvent(new Event("heard")));
  }

  /** The device's name as the system has it. */
  get label() {
    return this.#stream.getAudioTracks()[0]?.label ?? "";
  }

  /** While muted, silence is captured. @param {boolean} muted */
  set muted(muted) {
    this.#node.port.postMessage({ command: "mute", muted });
  }

  /** Gives the microphone back. */
  close() {
    for (const track of this.#stream.getTracks()) track.stop();
    this.#source.disconnect();
    this.#node.port.postMessage({ command: "stop" });
    this.#node.port.onmessage = null;
  }
}
