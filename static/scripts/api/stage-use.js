/** What the server's stages did while an utterance was made. */

import { address } from "./http.js";
import { Metrics, stageUse } from "./metrics.js";

/** Reads the server's metrics. @returns {Promise<Metrics | null>} */
export async function readMetrics() {
  try {
    const response = await fetch(address("metrics"), { cache: "no-store" });
    return response.ok ? new Metrics(await response.text()) : null;
  } catch {
    return null;
  }
}

/**
 * Reads the metrics now; `until` reads them again and tells the difference.
 * @returns {{until: () => Promise<import("./metrics.js").StageUse[]>}}
 */
export function readStages() {
  const before = readMetrics();
  return {
    async until() {
      const [first, last] = [await before, await readMetrics()];
      return first === null || last === null ? [] : stageUse(first, last);
    },
  };
}
