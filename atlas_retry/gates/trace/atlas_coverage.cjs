// Writes which functions of a project one process of Node runs. Loaded by NODE_OPTIONS.
// The functions of each process and worker go into a file of its own below ATLAS_TRACE.
"use strict";
const fs = require("fs");
const path = require("path");
const { Session } = require("inspector");
const { fileURLToPath } = require("url");
const { threadId } = require("worker_threads");

const EVERY_MS = 200; // a worker may be ended without an event
const root = fs.realpathSync(process.env.ATLAS_TRACE_ROOT) + path.sep;
const out = path.join(process.env.ATLAS_TRACE, `seen-${process.pid}-${threadId}.json`);
const ran = new Map();
const sources = new Map();
const session = new Session();

function watch() {
  try {
    session.connect();
  } catch {
    return; // a thread of Node's own, without an inspector
  }
  session.post("Profiler.enable");
  session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  setInterval(take, EVERY_MS).unref();
  process.on("exit", take);
  process.once("SIGTERM", () => process.exit(143));
}

function fileOf(url) {
  const file = url.startsWith("file:") ? fileURLToPath(url) : url.split("?")[0];
  const isOwn = file.startsWith(root) && !file.includes("node_modules");
  return isOwn ? file : undefined;
}

// 0 where the offset is of compiled code, and not of the file
function lineOf(file, name, offset) {
  if (!sources.has(file)) sources.set(file, fs.readFileSync(file, "utf8"));
  const source = sources.get(file);
  const isThere = source.slice(offset, offset + 100).includes(name.split(".").pop());
  return isThere ? source.slice(0, offset).split("\n").length : 0;
}

function take() {
  const before = ran.size;
  session.post("Profiler.takePreciseCoverage", (error, found) => {
    for (const { url, functions } of error ? [] : found.result) {
      const file = fileOf(url);
      for (const { functionName, ranges } of file ? functions : []) {
        if (!functionName || !ranges[0].count) continue;
        const line = lineOf(file, functionName, ranges[0].startOffset);
        const place = [file.slice(root.length), functionName.split(" ").pop(), line];
        ran.set(place.join(), place);
      }
    }
  });
  if (ran.size > before) fs.writeFileSync(out, JSON.stringify([...ran.values()]));
}

watch();
