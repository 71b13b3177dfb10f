/** The programs that do what the page does. */

const quoteShell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** A Python string literal. JSON's is one, but for two separators that JSON leaves as they are and Python reads alike. */
const quotePython = (text) => JSON.stringify(text);

/**
 * @param {string} base The server's address.
 * @param {object} body The request's body.
 * @param {string} file Where the audio goes.
 * @param {boolean} withKey Whether the server wants a key.
 */
export function curlCommand(base, body, file, withKey) {
  const lines = [`curl ${base}/v1/audio/speech`];
  if (withKey) lines.push('-H "Authorization: Bearer $ANTIPHON_API_KEY"');
  lines.push("-H 'Content-Type: application/json'", `-d ${quoteShell(JSON.stringify(body))}`, `-o ${file}`);
  return lines.join(" \\\n  ");
}

/** The same with OpenAI's Python library. Parameters as in `curlCommand`. */
export function pythonProgram(base, body, file, withKey) {
  const { model, input, voice, response_format: format, speed, ...extensions } = body;
  const key = withKey ? 'os.environ["ANTIPHON_API_KEY"]' : '"unused"';
  const lines = [
    ...(withKey ? ["import os", ""] : []),
    "from openai import OpenAI",
    "",
    `client = OpenAI(base_url=${quotePython(`${base}/v1`)}, api_key=${key})`,
    "",
    "with client.audio.speech.with_streaming_response.create(",
    `    model=${quotePython(model)},`,
    `    voice=${quotePython(voice)},`,
    `    input=${quotePython(input)},`,
    `    response_format=${quotePython(format)},`,
  ];
  if (speed !== undefined) lines.push(`    speed=${speed},`);
  if (Object.keys(extensions).length > 0) lines.push(`    extra_body=${JSON.stringify(extensions)},`);
  return [...lines, ") as response:", `    response.stream_to_file(${quotePython(file)})`].join("\n");
}
