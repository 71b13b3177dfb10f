/** The composition root of the page. */

import { Sound } from "./audio/sound.js";
import { Key } from "./key.js";
import { Recorder } from "./measure/recorder.js";
import { Notices } from "./notices.js";
import { Router } from "./router.js";
import { ServerStatus } from "./server-status.js";
import { ProgramPanel } from "./views/program.js";
import { SpeakView } from "./views/speak.js";
import { TalkView } from "./views/talk.js";
import { WatchView } from "./views/watch.js";
import { fillVoices } from "./voices.js";

/**
 * @typedef {{sound: Sound, recorder: Recorder, key: Key, notices: Notices, status: ServerStatus}} Services
 */

function start() {
  const services = {
    sound: new Sound(),
    recorder: new Recorder(),
    key: new Key(),
    notices: new Notices(),
    status: new ServerStatus(),
  };
  const speak = new SpeakView(services);
  new ProgramPanel(speak, services);
  const watch = new WatchView(services);
  const talk = new TalkView(services);
  new Router({ talk: talk.route, speak: speak.route, watch: watch.route });
  followSound(services);
  followVoices(services);
}

/** Says when the system silenced the page, and how to go on. */
function followSound({ sound, recorder, notices }) {
  let followed = null;
  sound.addEventListener("statechange", () => {
    if (!sound.interrupted) notices.withdraw("sound");
    else if (followed !== null) {
      notices.show("sound", "Your device paused the sound of this page.", { kind: "hint", action: "Go on", onAction: () => sound.open() });
    }
  });
  sound.addEventListener("open", () => {
    if (followed === sound.output) return;
    followed = sound.output;
    recorder.follow(followed);
    followed.addEventListener("broken", () => notices.show("sound", "The sound stopped working. Please load the page again."));
  });
}

function followVoices({ key, notices, status }) {
  const fill = async () => {
    try {
      await fillVoices(key.value);
      notices.withdraw("voices");
    } catch (problem) {
      if (problem.needsKey) key.ask(problem.message);
      else notices.show("voices", problem.message);
    }
  };
  status.addEventListener("ready", fill);
  key.addEventListener("change", fill);
}

start();
