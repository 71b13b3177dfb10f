/** Talk: a conversation with the server, begun by one button. */

import { address, request } from "../api/http.js";
import { byId } from "../dom.js";
import { TalkSession } from "../realtime/talk-session.js";
import { Waveform } from "../widgets/waveform.js";
import { TalkLog } from "./talk-log.js";
import { TalkMicrophone } from "./talk-microphone.js";
import { TalkSettingsForm } from "./talk-settings.js";

const WORDS = {
  idle: "Press to talk",
  connecting: "Connecting…",
  reconnecting: "The connection was lost. Coming back…",
  offline: "You are offline. We go on when the network is back.",
  listening: "Listening",
  hearing: "I hear you",
  thinking: "Thinking",
  speaking: "Speaking",
};

/** What is said instead while there is nobody to talk with. */
const ABSENT = { starting: "The server is starting…", unreachable: "The server cannot be reached" };

const HINTS = {
  idle: "Your browser will ask for the microphone. What you say goes to this server alone, and only until you stop.",
  starting: "It loads its models. You can talk as soon as it is ready.",
  unreachable: "This page looks for it every two seconds.",
};

export class TalkView {
  #services;
  #element = byId("view-talk");
  #toggle = byId("talk-toggle");
  #mute = byId("talk-mute");
  #interrupt = byId("talk-interrupt");
  #commit = byId("talk-commit");
  #settings = new TalkSettingsForm();
  #waveform = new Waveform(byId("talk-waveform"), { middle: 176 });
  #log;
  #microphone;
  #session = null;
  #followed = null;
  #opening = false;

  /** @param {import("../main.js").Services} services */
  constructor(services) {
    this.#services = services;
    this.#log = new TalkLog(services.notices);
    this.#microphone = new TalkMicrophone(services.notices);
    this.#microphone.addEventListener("frame", ({ detail }) => this.#heard(detail));
    this.#microphone.addEventListener("gone", () => this.#show());
    this.#toggle.addEventListener("click", () => this.#pressed());
    this.#mute.addEventListener("click", () => this.#setMuted(!this.#microphone.muted));
    this.#interrupt.addEventListener("click", () => this.#session?.interrupt());
    this.#commit.addEventListener("click", () => this.#session?.commit());
    byId("talk-clear").addEventListener("click", () => this.#startOver());
    byId("talk-form").addEventListener("submit", (event) => this.#written(event));
    this.#settings.addEventListener("change", () => this.#session?.change(this.#settings.value));
    services.status.addEventListener("change", () => this.#show());
    addEventListener("online", () => this.#session?.hurry());
    addEventListener("offline", () => this.#session?.networkChanged());
    document.addEventListener("visibilitychange", () => this.#session?.hurry());
    addEventListener("keydown", (event) => this.#key(event));
    addEventListener("pagehide", () => this.#stop());
    this.#show();
  }

  /** For the router. */
  get route() {
    return { title: "Talk", element: this.#element, shown: () => this.#show(), hidden: () => this.#hidden() };
  }

  /** Why there is no microphone is of no use elsewhere. */
  #hidden() {
    if (!this.#microphone.isOpen) this.#services.notices.withdraw("microphone");
  }

  #pressed() {
    if (this.#session !== null && this.#microphone.isOpen) this.#stop();
    else this.#start({ withMicrophone: true });
  }

  /** Begins a conversation, or adds the microphone to one that is written. */
  async #start({ withMicrophone }) {
    const { sound, recorder, key, notices } = this.#services;
    notices.withdraw("talk");
    this.#opening = true;
    this.#toggle.disabled = true;
    this.#toggle.dataset.state = "connecting";
    try {
      const output = await sound.open();
      this.#follow(output);
      if (withMicrophone && !(await this.#microphone.open(sound.context))) return;
      if (this.#session === null) {
        const settings = this.#settings.value;
        this.#adopt(new TalkSession(address("v1/realtime", "ws"), { output, recorder, settings, key: key.value }));
      }
      this.#waveform.start();
    } catch (failure) {
      console.error(failure);
      notices.show("talk", "The sound of this page could not be opened.");
    } finally {
      this.#opening = false;
      this.#show();
    }
  }

  /** Follows a new session. */
  #adopt(session) {
    const { notices } = this.#services;
    this.#session = session;
    const on = (type, act) => session.addEventListener(type, ({ detail }) => this.#session === session && act(detail));
    on("state", () => this.#show());
    on("activity", () => this.#show());
    on("turn", ({ turn }) => this.#log.show(turn));
    on("sound", ({ item, milliseconds }) => this.#log.addSound(item, milliseconds));
    on("cut", ({ item }) => this.#log.cut(item));
    on("struck", ({ item, heard }) => this.#log.strike(item, heard));
    on("retold", () => notices.show("talk", "The server had forgotten the conversation. It was told again what you both said.", { kind: "hint" }));
    on("problem", ({ message }) => notices.show("talk", message));
    on("ended", (end) => this.#ended(end));
    this.#settings.voiceIsFixed = true;
  }

  /** Follows what is played, once. */
  #follow(output) {
    if (this.#followed === output) return;
    this.#followed = output;
    output.addEventListener("report", ({ detail }) => {
      this.#waveform.note("them", detail.level);
      if (detail.segment !== null) this.#log.light(detail.segment, output.heardSeconds(detail.segment));
    });
    output.addEventListener("finished", ({ detail }) => this.#log.settle(detail.segment));
  }

  #heard({ samples, level }) {
    this.#waveform.note("you", level);
    this.#session?.hear(samples);
  }

  async #written(event) {
    event.preventDefault();
    const field = byId("talk-text");
    const text = field.value.trim();
    if (text === "" || this.#absent) return;
    field.value = "";
    if (this.#session === null) await this.#start({ withMicrophone: false });
    this.#session?.write(text);
  }

  #key(event) {
    const field = event.target.closest?.("input, textarea, select");
    if (this.#element.hidden || this.#session === null || field) return;
    if (event.key === "Escape") this.#session.interrupt();
    else if (event.key.toLowerCase() === "m" && !event.ctrlKey && !event.metaKey && !event.altKey) this.#setMuted(!this.#microphone.muted);
  }

  #setMuted(muted) {
    if (!this.#microphone.isOpen) return;
    this.#microphone.muted = muted;
    this.#show();
  }

  #stop() {
    this.#session?.close();
  }

  async #ended({ message, known }) {
    this.#session = null;
    this.#microphone.close();
    this.#waveform.stop();
    this.#settings.voiceIsFixed = false;
    this.#show();
    if (message === "") return;
    if (known) this.#tellEnd(`The conversation ended: ${message}`);
    else this.#tellEnd(`The conversation could not begin: ${await this.#whyNot(message)}`);
  }

  #tellEnd(text) {
    this.#services.notices.show("talk", text, { action: "Talk again", onAction: () => this.#start({ withMicrophone: true }) });
  }

  /** Browsers keep to themselves why a socket was refused; an ordinary request is told. */
  async #whyNot(message) {
    const { key } = this.#services;
    try {
      await request("v1/models", { key: key.value });
      return message;
    } catch (problem) {
      if (problem.needsKey) key.ask(problem.message);
      return problem.message;
    }
  }

  #startOver() {
    this.#stop();
    this.#log.clear();
    this.#waveform.clear();
    byId("talk-clear").hidden = true;
    this.#toggle.focus();
  }

  /** Whether a conversation cannot begin, as far as is known. */
  get #absent() {
    return this.#session === null && this.#services.status.state in ABSENT;
  }

  #show() {
    const session = this.#session;
    const state = session?.state ?? "idle";
    const talking = session !== null && this.#microphone.isOpen;
    this.#toggle.dataset.state = talking ? state : "idle";
    byId("talk-toggle-text").textContent = talking ? "Stop talking" : "Start talking";
    this.#toggle.dataset.muted = String(talking && this.#microphone.muted);
    if (!this.#opening) this.#toggle.disabled = this.#absent;
    byId("talk-send").disabled = this.#absent;
    this.#showHint();
    const words = this.#wordsOf(state, talking);
    if (byId("talk-state").textContent !== words) byId("talk-state").textContent = words;
    byId("talk-actions").hidden = session === null;
    this.#mute.hidden = !talking;
    this.#mute.setAttribute("aria-pressed", String(this.#microphone.muted));
    this.#interrupt.disabled = !session?.interruptible;
    this.#commit.hidden = !talking || this.#settings.value.turns !== "manual";
    if (session !== null) byId("talk-clear").hidden = false;
    if (!this.#element.hidden) document.title = talking ? `● ${words} · Antiphon` : "Talk · Antiphon";
  }

  #showHint() {
    const hint = byId("talk-hint");
    const text = HINTS[this.#absent ? this.#services.status.state : "idle"];
    hint.hidden = this.#session !== null;
    if (hint.textContent !== text) hint.textContent = text;
  }

  #wordsOf(state, talking) {
    if (this.#absent) return ABSENT[this.#services.status.state];
    if (state === "listening" && this.#microphone.muted) return "Muted";
    if (state === "listening" && !talking) return "Write, or press to talk";
    return WORDS[state] ?? WORDS.idle;
  }
}
