/** Speak: a text is read aloud, its words light up, the sound can be had as a file. */

import { ApiProblem } from "../api/http.js";
import { fetchSpeech, streamSpeech } from "../api/speech.js";
import { fetchTimeline } from "../api/timeline.js";
import { warningText } from "../api/warning.js";
import { SAMPLE_RATE, toWav } from "../audio/pcm.js";
import { byId, milliseconds, seconds } from "../dom.js";
import { keep } from "../preferences.js";
import { SpokenText } from "../widgets/spoken-text.js";
import { Waveform } from "../widgets/waveform.js";
import { saveFile } from "./save-file.js";

const MOST_CHARACTERS = 4096;
const SAMPLE = `An antiphon is a song in two voices: one calls, the other answers, and neither waits for the end of the verse.

So does this server. While you read this line, the first words are already on their way to your ear; the rest is still being made.`;

export class SpeakView {
  #services;
  #element = byId("view-speak");
  #text = byId("speak-text");
  #reading = byId("speak-reading");
  #start = byId("speak-start");
  #stop = byId("speak-stop");
  #edit = byId("speak-edit");
  #download = byId("speak-download");
  #voice = byId("speak-voice");
  #speed = byId("speak-speed");
  #format = byId("speak-format");
  #meter = new Waveform(byId("speak-meter"));
  #count = 0;
  #running = null;
  #last = null;

  /** @param {import("../main.js").Services} services */
  constructor(services) {
    this.#services = services;
    this.#text.value = SAMPLE;
    keep(this.#speed, "speak-speed");
    keep(this.#format, "speak-format");
    this.#start.addEventListener("click", () => this.#speak());
    this.#stop.addEventListener("click", () => this.#silence());
    this.#edit.addEventListener("click", () => this.#showEditor());
    this.#download.addEventListener("click", () => this.#save());
    services.status.addEventListener("ready", () => this.#withdrawNotices());
    this.#element.addEventListener("input", () => this.#changed());
    this.#element.addEventListener("change", () => this.#changed());
    this.#element.addEventListener("filled", () => this.#changed());
    this.#changed();
  }

  /** For the router. */
  get route() {
    return { title: "Speak", element: this.#element, hidden: () => this.#withdrawNotices() };
  }

  /** What is to be spoken, and how. */
  get wish() {
    return { text: this.#text.value, voice: this.#voice.value || "alloy", speed: Number(this.#speed.value) };
  }

  /** The format that a file is wanted in. */
  get format() {
    return this.#format.value;
  }

  #changed() {
    const length = [...this.#text.value].length;
    const counter = byId("speak-counter");
    counter.textContent = `${length.toLocaleString("en")} of ${MOST_CHARACTERS.toLocaleString("en")} characters`;
    counter.dataset.over = String(length > MOST_CHARACTERS);
    byId("speak-speed-value").textContent = `${Number(this.#speed.value)}×`;
    this.#start.disabled = this.#text.value.trim() === "";
    this.#download.disabled = this.#text.value.trim() === "";
    this.#element.dispatchEvent(new Event("wish"));
  }

  async #speak() {
    this.#silence();
    const { sound, key, recorder, notices } = this.#services;
    const name = `speak-${(this.#count += 1)}`;
    const running = { name, abort: new AbortController(), spoken: null, output: null, pieces: [] };
    running.wish = { ...this.wish, seed: crypto.getRandomValues(new Uint32Array(1))[0] };
    this.#running = running;
    this.#last = null;
    notices.withdraw("speak");
    this.#showReading(running);
    try {
      running.output = await sound.open();
      if (this.#running !== running) return;
      running.utterance = recorder.begin(name, "speak", running.wish.text);
      await this.#play(running, key.value);
    } catch (failure) {
      this.#fail(running, failure);
    }
  }

  async #play(running, key) {
    const { output, utterance, spoken, wish } = running;
    const { recorder } = this.#services;
    this.#follow(running);
    output.begin(running.name);
    for await (const event of streamSpeech(wish, { key, signal: running.abort.signal })) {
      if (event.type === "headers") {
        running.requestId = event.requestId;
        utterance.answered(event.timings);
        this.#warn(event.warning);
      } else if (event.type === "word") {
        spoken.add(event.word);
      } else if (event.type === "sound") {
        const first = utterance.firstSoundAt === null;
        utterance.arrived(performance.now(), event.samples.length / SAMPLE_RATE);
        if (first) this.#noteTimeline(running, key);
        running.pieces.push(event.samples.slice());
        output.write(event.samples);
        recorder.changed();
        await output.room();
      } else {
        this.#last = running;
        output.end();
        this.#noteTimeline(running, key);
      }
    }
  }

  /** Asks the server where its time went: at the first sound, and at the end. */
  async #noteTimeline({ requestId, utterance }, key) {
    if (requestId === null) return;
    utterance.served = (await fetchTimeline(requestId, key)) ?? utterance.served;
    this.#services.recorder.changed();
  }

  /** Shows what is heard of an utterance until it is over. */
  #follow(running) {
    const { output, name } = running;
    const end = new AbortController();
    const on = (type, act) =>
      output.addEventListener(type, (event) => (event.detail.segment ?? name) === name && act(event.detail), { signal: end.signal });
    running.unfollow = () => end.abort();
    on("report", (report) => {
      running.spoken.show(output.heardSeconds(name));
      this.#meter.note("them", report.level);
      this.#showFacts(running);
    });
    // The last samples reach the ear a little after the worklet is done with them.
    on("finished", () => setTimeout(() => this.#finish(running), 1000 * output.latencySeconds));
    this.#meter.clear();
    this.#meter.start();
  }

  #finish(running) {
    if (this.#running !== running) return;
    running.spoken.finish();
    this.#settle(running);
    this.#showFacts(running);
    this.#services.notices.announce("The text was read to its end.");
  }

  #silence() {
    const running = this.#running;
    if (running === null) return;
    running.abort.abort();
    running.output?.flush();
    running.utterance?.ended(performance.now(), "interrupted");
    this.#settle(running);
  }

  #fail(running, failure) {
    if (failure.name === "AbortError" || this.#running !== running) return;
    const { notices, key, recorder } = this.#services;
    running.output?.flush();
    running.utterance?.ended(performance.now(), "failed");
    recorder.changed();
    this.#settle(running);
    this.#showEditor();
    const message = failure instanceof ApiProblem ? failure.message : "The sound could not be played.";
    if (!(failure instanceof ApiProblem)) console.error(failure);
    notices.show("speak", message, { action: "Try again", onAction: () => this.#speak() });
    if (failure.needsKey) key.ask(failure.message);
  }

  #settle(running) {
    if (this.#running === running) this.#running = null;
    running.unfollow?.();
    this.#meter.stop();
    this.#stop.disabled = true;
    this.#reading.dataset.state = "done";
    byId("speak-start-text").textContent = "Speak again";
  }

  #showReading(running) {
    running.spoken = new SpokenText(this.#reading, running.wish.text);
    this.#reading.dataset.state = "speaking";
    this.#reading.hidden = false;
    this.#reading.scrollTop = 0;
    this.#text.hidden = true;
    this.#edit.hidden = false;
    this.#stop.disabled = false;
  }

  #showEditor() {
    this.#silence();
    this.#reading.hidden = true;
    this.#text.hidden = false;
    this.#edit.hidden = true;
    byId("speak-start-text").textContent = "Speak";
    this.#text.focus();
  }

  #showFacts({ utterance, output, name }) {
    byId("speak-first").textContent = milliseconds(utterance.firstSoundMilliseconds);
    const heard = utterance.outcome === "finished" ? utterance.soundSeconds : output.heardSeconds(name);
    byId("speak-heard").textContent = `${heard.toFixed(1)} of ${utterance.soundSeconds.toFixed(1)} s`;
    byId("speak-buffered").textContent = seconds(output.bufferedSeconds);
    byId("speak-underruns").textContent = String(utterance.underruns);
    const pace = utterance.timesRealTime;
    byId("speak-pace").textContent = pace === null ? "–" : `${pace.toFixed(1)}× real time`;
  }

  #warn(warning) {
    const text = warningText(warning);
    if (text !== "") this.#services.notices.show("speak", text, { kind: "hint" });
  }

  /** What went wrong here is of no use elsewhere, nor once the server has come up. */
  #withdrawNotices() {
    for (const topic of ["speak", "download"]) this.#services.notices.withdraw(topic);
  }

  async #save() {
    const { notices, key } = this.#services;
    const heard = this.#last;
    const sameAsHeard = heard !== null && Object.entries(this.wish).every(([name, value]) => heard.wish[name] === value);
    this.#download.disabled = true;
    try {
      saveFile(await this.#fileOf(sameAsHeard ? heard : null, key.value), `speech.${this.format}`);
      notices.announce("The file was saved.");
    } catch (failure) {
      notices.show("download", failure.message);
      if (failure.needsKey) key.ask(failure.message);
    } finally {
      this.#download.disabled = false;
    }
  }

  /** What was heard as it was heard, if possible without asking the server again. */
  #fileOf(heard, key) {
    if (heard !== null && this.format === "wav") return new Blob([toWav(heard.pieces)], { type: "audio/wav" });
    if (heard !== null && this.format === "pcm") return new Blob(heard.pieces, { type: "audio/pcm" });
    return fetchSpeech(heard?.wish ?? this.wish, this.format, { key });
  }
}
