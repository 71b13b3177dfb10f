/** The socket of a conversation, and the way back when it is lost. */

import { MOST_ATTEMPTS, delayBefore } from "./backoff.js";

/** Codes by which the server ends a session for good. */
const FINAL_CODES = new Set([1000, 1008, 4001]);
/** After so many attempts to resume, a new session is begun; the old one may be gone. */
const ATTEMPTS_TO_RESUME = 4;
/** A server that never answered gets this many further attempts; a wrong key will not get better. */
const ATTEMPTS_TO_BEGIN = 2;

/**
 * Dispatches `event` with the server's event as `detail`, `opened` with {resumed}, `lost` with {attempt}, and
 * `ended` with {code, reason, asked} when there is no way back or the page closed it.
 */
export class Connection extends EventTarget {
  #address;
  #key;
  #makeSocket;
  #isOnline;
  #socket = null;
  #token = null;
  #lastEvent = null;
  #attempt = 0;
  /** Attempts while the system says that there is no network; they do not count. */
  #offlineAttempt = 0;
  #known = false;
  #timer = 0;
  #closed = false;

  /**
   * @param {URL} address Of `/v1/realtime`.
   * @param {{key?: string, makeSocket?: (url: URL, protocols: string[]) => WebSocket, isOnline?: () => boolean}} [options]
   */
  constructor(address, { key = "", makeSocket = newSocket, isOnline = browserIsOnline } = {}) {
    super();
    this.#address = address;
    this.#key = key;
    this.#makeSocket = makeSocket;
    this.#isOnline = isOnline;
  }

  /** Opens the socket; resumes the session if there is one. */
  open() {
    const url = new URL(this.#address);
    const resuming = this.#token !== null && this.#attempt < ATTEMPTS_TO_RESUME;
    if (!resuming) this.#token = null;
    url.searchParams.set("resume", this.#token ?? "1");
    if (resuming && this.#lastEvent !== null) url.searchParams.set("after", this.#lastEvent);
    const protocols = ["realtime"];
    if (this.#key) protocols.push(`openai-insecure-api-key.${this.#key}`);
    let socket;
    try {
      socket = this.#makeSocket(url, protocols);
    } catch {
      this.#end(1008, "The API key holds characters that a browser cannot send.", false);
      return;
    }
    this.#socket = socket;
    socket.onmessage = ({ data }) => this.#socket === socket && this.#receive(JSON.parse(data), resuming);
    socket.onclose = ({ code, reason }) => this.#socket === socket && this.#lose(code, reason);
  }

  /** Whether events can be sent. */
  get isOpen() {
    return this.#socket?.readyState === 1;
  }

  /**
   * Sends an event; what cannot be sent now is dropped.
   * @param {object} event
   * @returns {boolean} Whether it was sent.
   */
  send(event) {
    if (!this.isOpen) return false;
    this.#socket.send(JSON.stringify(event));
    return true;
  }

  /** Bytes that the network has not taken yet. */
  get waitingBytes() {
    return this.#socket?.bufferedAmount ?? 0;
  }

  /** Tries again at once, as when the network is back. */
  hurry() {
    if (this.#timer === 0) return;
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.open();
  }

  /** Whether a session is there that the network was taken from. */
  get offline() {
    return !this.isOpen && !this.#isOnline();
  }

  /**
   * Gives up a socket that leads nowhere, as when the network is gone or another one has taken its place, and comes
   * back on a new one. A server on this machine is there without any network.
   */
  drop() {
    const socket = this.#socket;
    if (socket === null || !this.#known) return;
    this.#lose(1006, "");
    socket.close();
  }

  /** Ends the session. */
  close() {
    this.#end(1000, "", true);
    this.#socket?.close(1000);
    this.#socket = null;
  }

  #receive(event, resuming) {
    if (event.type === "session.created") {
      const resumed = resuming && event.session.resume_token === this.#token;
      this.#token = event.session.resume_token ?? null;
      this.#attempt = this.#offlineAttempt = 0;
      this.#known = true;
      this.dispatchEvent(new CustomEvent("opened", { detail: { resumed } }));
    }
    // What a resumed socket begins with was not part of the old one.
    if (event.event_id && event.type !== "session.created") this.#lastEvent = event.event_id;
    this.dispatchEvent(new CustomEvent("event", { detail: event }));
  }

  #lose(code, reason) {
    if (this.#closed) return;
    this.#socket = null;
    const most = this.#known ? MOST_ATTEMPTS : ATTEMPTS_TO_BEGIN;
    const online = this.#isOnline();
    if (FINAL_CODES.has(code) || (online && this.#attempt >= most)) {
      this.#end(code, reason, false);
      return;
    }
    const attempt = online ? this.#attempt : this.#offlineAttempt;
    if (online) this.#attempt += 1;
    else this.#offlineAttempt += 1;
    this.dispatchEvent(new CustomEvent("lost", { detail: { attempt } }));
    this.#timer = setTimeout(() => {
      this.#timer = 0;
      this.open();
    }, delayBefore(attempt));
  }

  #end(code, reason, asked) {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#timer);
    this.dispatchEvent(new CustomEvent("ended", { detail: { code, reason, asked } }));
  }
}

function newSocket(url, protocols) {
  return new WebSocket(url, protocols);
}

function browserIsOnline() {
  return globalThis.navigator?.onLine !== false;
}
