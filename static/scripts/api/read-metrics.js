/** Reads what the server counts. */

import { address } from "./http.js";
import { Metrics } from "./metrics.js";

/** Reads the server's metrics. @returns {Promise<Metrics | null>} */
export async function readMetrics() {
  try {
    const response = await fetch(address("metrics"), { cache: "no-store" });
    return response.ok ? new Metrics(await response.text()) : null;
  } catch {
    return null;
  }
}
