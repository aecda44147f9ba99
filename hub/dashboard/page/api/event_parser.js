/** Parser for server-sent events. Pure. */

/**
 * @typedef {{id: string, data: string}} Message
 */

/**
 * Appends a chunk to the unparsed rest and returns the complete messages. An empty line ends a
 * message.
 * @param {string} left
 * @param {string} piece
 * @returns {{messages: Message[], left: string}}
 */
export function parseChunk(left, piece) {
  const parts = (left + piece).split("\n\n");
  const rest = parts.pop() ?? "";
  const messages = parts.map(message).filter((item) => item.data !== "");
  return { messages, left: rest };
}

/** @param {string} text @returns {Message} */
function message(text) {
  const result = { id: "", data: "" };
  for (const line of text.split("\n")) {
    if (line.startsWith("id: ")) result.id = line.slice(4);
    if (line.startsWith("data: ")) result.data += line.slice(6);
  }
  return result;
}
