// The simulator in this page: WebAssembly in its own worker, so that the page stays usable.
import { unpackBytes } from './decode';

// What the worker does before and after the simulator's own JavaScript (tools/viewer/live). All is
// one script: a page that was opened from a file may not load a second one.
const kBefore = `
let takeBinary;
const binary = new Promise((done) => { takeBinary = done; });
let isReady, isLost;
const simulator = new Promise((done, fail) => { isReady = done; isLost = fail; });
self.Module = {
  instantiateWasm: (imports, receive) => {
    binary
      .then((bytes) => WebAssembly.instantiate(bytes, imports))
      .then((made) => receive(made.instance))
      .catch(isLost);
    return {};
  },
  onAbort: isLost,
  onRuntimeInitialized: () => isReady(self.Module),
};
`;
const kAfter = `
onmessage = async (event) => {
  const { binary, request, id } = event.data;
  if (binary) {
    takeBinary(binary);
    return;
  }
  try {
    const own = await simulator;
    const text = new TextEncoder().encode(request);
    const begin = performance.now();
    const at = own._malloc(text.length);
    own.HEAPU8.set(text, at);
    const answer = own._rehearse_play(at, text.length);
    const bytes = own.HEAPU8.slice(answer, answer + own._rehearse_size());
    own._free(at);
    postMessage({ id, bytes, took: performance.now() - begin }, [bytes.buffer]);
  } catch (error) {
    postMessage({ id, fault: String(error) });
  }
};`;

export interface Played {
  bytes: Uint8Array;
  took: number;
} // milliseconds

interface Asked {
  id: number;
  request: string;
  done: (played: Played) => void;
  fail: (error: Error) => void;
}

export class Simulator {
  private worker: Promise<Worker> | null = null;
  private running: Asked | null = null;
  private next: Asked | null = null;
  private ids = 0;
  private begun = 0;

  constructor(private readonly packed: string) {}

  // The answer to the newest request counts; older ones that have not begun are never answered.
  play(request: string): Promise<Played> {
    return new Promise((done, fail) => {
      this.next = { id: ++this.ids, request, done, fail };
      const kPatience = 1500;
      if (this.running && performance.now() - this.begun > kPatience) this.stop();
      void this.go();
    });
  }

  // Plays what nobody waits for, so that the next request finds code that is ready.
  async warmUp(request: string): Promise<void> {
    if (this.running || this.next) return;
    const played = this.play(request);
    this.begun = Infinity; // whoever comes next waits for it: starting again would take longer
    await played;
  }

  // As play(), if nothing else is asked; otherwise null at once.
  async playIfIdle(request: string): Promise<Played | null> {
    return this.running || this.next ? null : this.play(request);
  }

  private stop(): void {
    void this.worker?.then((worker) => worker.terminate());
    this.worker = null;
    this.running = null;
  }

  private async go(): Promise<void> {
    if (this.running || !this.next) return;
    const asked = this.next;
    this.running = asked;
    this.next = null;
    this.begun = performance.now();
    try {
      this.worker ??= this.start();
      const worker = await this.worker;
      if (this.running === asked) worker.postMessage({ id: asked.id, request: asked.request });
    } catch (error) {
      this.end(asked.id, (one) => one.fail(error as Error));
    }
  }

  private end(id: number, act: (asked: Asked) => void): void {
    const asked = this.running;
    if (!asked || asked.id !== id) return;
    this.running = null;
    act(asked);
    void this.go();
  }

  private async start(): Promise<Worker> {
    if (!this.packed)
      throw new Error('this page has no simulator: tools/viewer/build was run without emscripten');
    if (typeof WebAssembly === 'undefined') throw new Error('this browser has no WebAssembly');
    const bytes = await unpackBytes(this.packed);
    const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
    const glue = new TextDecoder().decode(bytes.subarray(4, 4 + length));
    const script = new Blob([kBefore, glue, kAfter], { type: 'text/javascript' });
    const worker = new Worker(URL.createObjectURL(script));
    worker.onmessage = ({ data }: MessageEvent) =>
      this.end(data.id as number, (asked) => {
        if (data.fault === undefined) {
          asked.done({ bytes: data.bytes as Uint8Array, took: data.took as number });
          return;
        }
        // Its state is unknown now: the next request gets a new worker.
        worker.terminate();
        this.worker = null;
        asked.fail(new Error(`the simulator stopped: ${data.fault as string}`));
      });
    worker.onerror = (event) => {
      event.preventDefault();
      this.worker = null;
      if (this.running) this.end(this.running.id, (asked) => asked.fail(new Error(event.message)));
    };
    worker.postMessage({ binary: bytes.slice(4 + length).buffer });
    return worker;
  }
}
