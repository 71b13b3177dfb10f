/**
 * Lets the browser save a file.
 * @param {Blob} blob
 * @param {string} name
 */
export function saveFile(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The browser reads the address when it gets round to it.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
