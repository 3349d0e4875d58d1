// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Server-sent events, read from bytes as they come. It knows nothing of what they are about.

export interface Message {
  id: string;
  name: string;
  data: string;
}

/** Reads a stream piece by piece, wherever it is cut. An event without an ID has the one before. */
export class EventReader {
  private readonly text = new TextDecoder();
  private rest = "";
  private id = "";
  private name = "";
  private data: string[] = [];

  read(bytes: Uint8Array): Message[] {
    const messages: Message[] = [];
    const lines = (this.rest + this.text.decode(bytes, { stream: true })).split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) this.line(line.endsWith("\r") ? line.slice(0, -1) : line, messages);
    return messages;
  }

  private line(line: string, messages: Message[]): void {
    if (line === "") {
      // A sign of life says how far the reader has come, and nothing else.
      if (this.data.length > 0 || this.name !== "") messages.push({ id: this.id, name: this.name || "message", data: this.data.join("\n") });
      else if (this.id !== "") messages.push({ id: this.id, name: "", data: "" });
      this.name = "";
      this.data = [];
      return;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "id") this.id = value;
    if (field === "event") this.name = value;
    if (field === "data") this.data.push(value);
  }
}
