// What a page holds: runs (steps with their spans), their comparison, and tables of many steps.
// scenarios/reporting/report_page.h says what is in the header. Times are nanoseconds.
import type { Unpacked } from './decode';

export interface SpanClass {
  name: string;
  fill: string;
  ink: string;
  communicates: boolean;
}
export interface Stream {
  name: string;
  communicates: boolean;
}
export interface Role {
  name: string;
  streams: Stream[];
  repeats: [number, number, number, number][]; // begin, end, times, micro-batches
  base: number; // of its ops in Run.ops
  count: number;
}
export interface ShownRank {
  rank: number;
  role: number;
  standsFor: number;
  name: string;
  first: number; // spans [first, end)
  end: number;
}
export interface Link {
  name: string;
  kind: string;
  capacity: number;
  bytes: number;
  count: number;
  use: number;
  at: Float64Array; // ns
  share: Float64Array; // thousandths of the capacity, from `at` on
  spans: Float64Array;
}
export interface Memory {
  rank: number;
  parameters: number;
  gradients: number;
  optimizer: number;
  at: Float64Array; // ns
  activations: Float64Array; // bytes
  buffers: Float64Array;
}
// Ports of a network that was played packet by packet (sim/report/network_picture.h).
export interface NetworkPort {
  name: string;
  bytes_per_second: number;
  longest_queue_bytes: number;
  sent_bytes: number;
  stopped_seconds: number;
  marked: number;
  lost: number;
  queued_bytes_over_time: number[];
  stopped_seconds_over_time: number[];
  sent_bytes_over_time: number[];
}
export interface HeldOp {
  op: string;
  kind: string;
  transfers: number;
  longest_seconds: number;
}
export interface Network {
  interval_seconds: number;
  ports: number;
  shown: NetworkPort[];
  trees: {
    root: string;
    stopped_seconds: number;
    ports: number;
    depth: number;
    held_on_their_way: HeldOp[];
    victims: HeldOp[];
  }[];
}
export interface Piece {
  begin: number; // ns
  end: number;
  work: number; // position in kWorks
  microBatch: number;
  chunk: number;
  fromEnd: boolean; // of the copy of the model that begins on the last rank
}
export const kWorks = ['forward', 'input gradient', 'weight gradient', 'backward'];
export interface PipelineRow {
  rank: number;
  name: string;
  bubble: number;
  from: number; // ns
  to: number;
  pieces: Piece[];
}
export interface Pipeline {
  bubble: number;
  rows: PipelineRow[];
}
export interface DrawnLink {
  path: string;
  kind: string;
  count: number;
  count_at: [number, number];
  together: string; // the bandwidth of all
  title: string;
  records: number[];
}
export interface Drawing {
  name: string;
  devices: number;
  width: number;
  height: number;
  nodes: [number, number, number, number, string][];
  boxes: [number, number, number, number, string, string, string, number][];
  links: DrawnLink[];
  captions: [number, number, string][];
}
export interface AxisUse {
  operations: number;
  bytes: number;
  seconds: number;
  exposed_seconds: number;
}
export interface Result {
  step_seconds: number;
  breakdown: {
    compute_seconds: number;
    exposed_communication_seconds: number;
    idle_seconds: number;
  };
  communication_seconds: number;
  overlap_fraction: number;
  by_axis: Record<string, AxisUse>;
  model_flops_utilization?: number;
  tokens_per_second?: number;
  fidelity?: string;
  memory?: Record<string, number>;
  timeline_hash?: string;
  memory_capacity_bytes?: number;
  notes?: string[];
}

export const kPhases = ['forward', 'recompute', 'backward', 'synchronize', 'update'];

// The ops of all roles, one after the other.
export interface Ops {
  name: string[];
  kind: string[];
  detail: string[];
  cls: Uint16Array;
  waits: Uint8Array; // kernels that only wait
  stream: Uint16Array;
  phase: Uint8Array;
  layer: Int32Array;
  microBatch: Int32Array;
  bytes: Float64Array;
  busFactor: Float64Array;
  afterBegin: Uint32Array;
  after: Float64Array;
}

// JSON that our own program wrote.
type Json = Record<string, any>; // eslint-disable-line

export class Run {
  letter = ''; // of two in a page; showPage says which
  readonly title: string;
  readonly source: string;
  readonly provenance: string;
  readonly rankCount: number;
  readonly step: number;
  readonly steps: number;
  readonly classes: SpanClass[];
  readonly roles: Role[];
  readonly shown: ShownRank[];
  readonly ops: Ops;
  readonly count: number;
  readonly op: Uint32Array; // by span: position in ops
  readonly position: Uint32Array; // by span: among the ops of its rank
  readonly microBatch: Int32Array;
  readonly begin: Float64Array;
  readonly end: Float64Array;
  readonly ready: Float64Array;
  readonly knowsWaits: boolean;
  readonly path: { span: Float64Array; begin: Float64Array; end: Float64Array };
  readonly links: Link[];
  readonly linksLeftOut: number;
  readonly memory: Memory[];
  readonly network: Network | null;
  readonly result: Result | null;
  readonly cluster: Drawing | null;
  readonly leftOut: number;
  readonly asked: number[]; // ranks that somebody wants to see
  readonly pipeline: Pipeline | null;
  private readonly representativeRuns: [number, number][];
  private readonly roleRuns: [number, number][];
  private readonly readReleased: () => Float64Array;
  private knownReleased: Float64Array | null = null;
  private readonly commOrdinal: Int32Array; // by span: among those that communicate, or -1
  private readonly held = new Map<number, { link: number; share: number }>();
  private inverse: Map<number, number[]> | null = null;

  constructor(json: Json, column: Unpacked['column']) {
    const ns = json.tick / 1000;
    const strings = json.strings as string[];
    this.title = json.title;
    this.source = json.source;
    this.provenance = json.provenance;
    this.rankCount = json.ranks;
    this.step = json.step * ns;
    this.steps = json.steps;
    this.knowsWaits = json.knows_waits;
    this.leftOut = json.left_out;
    this.result = json.result;
    this.cluster = json.cluster;
    this.network = json.network ?? null;
    this.linksLeftOut = json.links_left_out;
    this.asked = json.asked ?? [];
    this.pipeline = json.pipeline ? readPipeline(json.pipeline, ns, column) : null;
    this.representativeRuns = json.representative_runs;
    this.roleRuns = json.role_runs;
    this.classes = json.classes.map((c: [string, string, string, boolean]) => ({
      name: c[0],
      fill: c[1],
      ink: c[2],
      communicates: c[3],
    }));
    this.roles = [];
    this.ops = readOps(json.roles, this.roles, strings, column);
    this.shown = json.shown.map((s: [number, number, number, string, number, number]) => ({
      rank: s[0],
      role: s[1],
      standsFor: s[2],
      name: s[3],
      first: s[4],
      end: s[5],
    }));

    const spans = json.spans as Record<string, number>;
    const begin = column(spans.begin);
    const took = column(spans.took);
    const waited = column(spans.waited);
    const n = begin.length;
    this.count = n;
    this.begin = begin;
    this.end = new Float64Array(n);
    this.ready = new Float64Array(n);
    for (let i = 0; i < n; ++i) {
      const from = begin[i];
      begin[i] = from * ns;
      this.end[i] = (from + took[i]) * ns;
      this.ready[i] = (from - waited[i]) * ns;
    }
    this.position = new Uint32Array(column(spans.op));
    this.op = new Uint32Array(n);
    this.microBatch = new Int32Array(n);
    this.commOrdinal = new Int32Array(n).fill(-1);
    for (const rank of this.shown) this.placeOps(rank);
    this.readReleased = () => column(spans.released_by);
    let ordinal = 0;
    const communicates = Uint8Array.from(this.ops.cls, (cls) =>
      Number(this.classes[cls].communicates),
    );
    for (let i = 0; i < n; ++i) if (communicates[this.op[i]] === 1) this.commOrdinal[i] = ordinal++;
    const held = column(spans.held);
    const by = column(spans.held_by);
    const share = column(spans.held_share);
    for (let i = 0; i < held.length; ++i)
      this.held.set(held[i], { link: by[i], share: share[i] / 100 });

    const pathBegin = column(json.path.begin);
    const pathEnd = column(json.path.took);
    for (let i = 0; i < pathBegin.length; ++i) {
      pathEnd[i] = (pathBegin[i] + pathEnd[i]) * ns;
      pathBegin[i] *= ns;
    }
    this.path = { span: column(json.path.span), begin: pathBegin, end: pathEnd };
    this.links = json.links.map((link: Json) => ({
      ...link,
      at: column(link.at).map((t) => t * ns),
      share: column(link.share),
      spans: column(link.spans),
    }));
    this.memory = json.memory.map((curve: Json) => ({
      ...curve,
      at: column(curve.at).map((t) => t * ns),
      activations: column(curve.activations).map((v) => v * 1024),
      buffers: column(curve.buffers).map((v) => v * 1024),
    }));
  }

  private get released(): Float64Array {
    return (this.knownReleased ??= this.readReleased());
  }

  // Positions count the copies of what a role repeats; their ops are stored once.
  private placeOps(rank: ShownRank): void {
    const role = this.roles[rank.role];
    let repeat = 0;
    let shift = 0; // positions that earlier copies took
    for (let i = rank.first; i < rank.end; ++i) {
      const position = this.position[i];
      let place = position - shift;
      let later = 0;
      for (; repeat < role.repeats.length; ++repeat) {
        const [begin, end, times, batches] = role.repeats[repeat];
        const size = end - begin;
        if (place < end + times * size) {
          if (place >= end) {
            const copy = Math.floor((place - begin) / size);
            place -= copy * size;
            later = copy * batches;
          }
          break;
        }
        shift += times * size;
        place -= times * size;
      }
      this.op[i] = role.base + place;
      this.microBatch[i] = this.ops.microBatch[role.base + place] + later;
    }
  }

  shownOf(span: number): ShownRank {
    let low = 0;
    let high = this.shown.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.shown[middle].first <= span) low = middle;
      else high = middle - 1;
    }
    return this.shown[low];
  }

  // The shown rank whose spans also stand for `rank`; nothing if they are left out.
  shownFor(rank: number): ShownRank | undefined {
    const at = (runs: [number, number][]) => {
      let left = rank;
      for (const [value, ranks] of runs) {
        if (left < ranks) return value;
        left -= ranks;
      }
      return undefined;
    };
    if (!Number.isInteger(rank) || rank < 0 || rank >= this.rankCount) return undefined;
    const by = this.representativeRuns.length ? at(this.representativeRuns) : rank;
    return (
      this.shown.find((one) => one.rank === by) ??
      this.shown.find((one) => one.role === at(this.roleRuns))
    );
  }

  spanAt(rank: ShownRank, position: number): number {
    let low = rank.first;
    let high = rank.end;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.position[middle] < position) low = middle + 1;
      else high = middle;
    }
    return low < rank.end && this.position[low] === position ? low : -1;
  }

  communicates(span: number): boolean {
    return this.commOrdinal[span] >= 0;
  }
  classOf(span: number): SpanClass {
    return this.classes[this.ops.cls[this.op[span]]];
  }
  nameOf(span: number): string {
    return this.ops.name[this.op[span]];
  }
  layerOf(span: number): number {
    return this.ops.layer[this.op[span]];
  }
  bytesOf(span: number): number {
    return this.ops.bytes[this.op[span]];
  }
  busbwOf(span: number): number {
    const took = this.end[span] - this.begin[span];
    return took > 0 ? ((this.bytesOf(span) * this.ops.busFactor[this.op[span]]) / took) * 1e9 : 0;
  }
  bottleneckOf(span: number): { link: Link; share: number } | undefined {
    const held = this.held.get(span);
    return held && { link: this.links[held.link], share: held.share };
  }
  isCopyStream(span: number, other: number): boolean {
    return this.ops.stream[this.op[span]] === this.ops.stream[this.op[other]];
  }

  // What a span waited for, and why; the last to end first.
  waitedFor(span: number): { span: number; why: string }[] {
    const rank = this.shownOf(span);
    const found = new Map<number, string>();
    if (this.knowsWaits) {
      const op = this.op[span];
      for (let i = this.ops.afterBegin[op]; i < this.ops.afterBegin[op + 1]; ++i) {
        const other = this.spanAt(rank, this.position[span] - this.ops.after[i]);
        if (other >= 0) found.set(other, 'needs its result');
      }
      for (let i = span - 1; i >= rank.first; --i) {
        if (!this.isCopyStream(i, span)) continue;
        if (!found.has(i)) found.set(i, 'same stream');
        break;
      }
      const ordinal = this.commOrdinal[span];
      const release = ordinal >= 0 ? (this.released[ordinal] ?? -1) : -1;
      if (release >= 0)
        found.set(
          release,
          release >= rank.first && release < rank.end
            ? 'was the last to end'
            : 'made the last member of the group ready',
        );
    } else {
      let last = -1;
      for (let i = rank.first; i < rank.end; ++i) {
        if (i === span || this.end[i] > this.ready[span] + 1) continue;
        if (last < 0 || this.end[i] > this.end[last]) last = i;
      }
      if (last >= 0) found.set(last, 'ended last before it was ready');
    }
    return [...found]
      .map(([other, why]) => ({ span: other, why }))
      .sort((a, b) => this.end[b.span] - this.end[a.span]);
  }

  // What waits for a span, the first to begin first.
  waitsFor(span: number): { span: number; why: string }[] {
    if (!this.knowsWaits) return [];
    const rank = this.shownOf(span);
    const found = new Map<number, string>();
    let next = true;
    for (let i = span + 1; i < rank.end; ++i) {
      if (next && this.isCopyStream(i, span)) {
        found.set(i, 'same stream');
        next = false;
      }
      const op = this.op[i];
      const distance = this.position[i] - this.position[span];
      for (let j = this.ops.afterBegin[op]; j < this.ops.afterBegin[op + 1]; ++j)
        if (this.ops.after[j] === distance) found.set(i, 'needs its result');
    }
    if (this.inverse === null) {
      this.inverse = new Map();
      for (let i = 0; i < this.count; ++i) {
        const ordinal = this.commOrdinal[i];
        const release = ordinal >= 0 ? (this.released[ordinal] ?? -1) : -1;
        if (release < 0) continue;
        const known = this.inverse.get(release);
        if (known) known.push(i);
        else this.inverse.set(release, [i]);
      }
    }
    for (const other of this.inverse.get(span) ?? [])
      if (!found.has(other)) found.set(other, 'begins when this has ended');
    return [...found]
      .map(([other, why]) => ({ span: other, why }))
      .sort((a, b) => this.begin[a.span] - this.begin[b.span]);
  }
}

function readPipeline(json: Json, ns: number, column: Unpacked['column']): Pipeline {
  const rows = (json.rows as Json[]).map((row) => {
    const [begin, took, work, microBatch, chunk, fromEnd] = [
      row.begin,
      row.took,
      row.work,
      row.micro_batch,
      row.chunk,
      row.from_end,
    ].map((one) => column(one));
    const pieces = Array.from(begin, (from, i) => ({
      begin: from * ns,
      end: (from + took[i]) * ns,
      work: work[i],
      microBatch: microBatch[i],
      chunk: chunk[i],
      fromEnd: fromEnd[i] === 1,
    }));
    return { ...row, from: row.from * ns, to: row.to * ns, pieces } as unknown as PipelineRow;
  });
  return { bubble: json.bubble, rows };
}

function readOps(json: Json[], roles: Role[], strings: string[], column: Unpacked['column']): Ops {
  const parts: Record<string, Float64Array[]> = {};
  for (const role of json) {
    const base = roles.length ? roles[roles.length - 1].base + roles[roles.length - 1].count : 0;
    let count = 0;
    for (const [name, number] of Object.entries(role.ops as Record<string, number>)) {
      const values = column(number);
      (parts[name] ??= []).push(values);
      if (name === 'name') count = values.length;
    }
    roles.push({
      name: role.name,
      streams: role.streams.map((s: [string, boolean]) => ({ name: s[0], communicates: s[1] })),
      repeats: role.repeats,
      base,
      count,
    });
  }
  const joined = (name: string): Float64Array => {
    const all = parts[name] ?? [];
    const values = new Float64Array(all.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of all) {
      values.set(part, at);
      at += part.length;
    }
    return values;
  };
  const counts = joined('after_count');
  const afterBegin = new Uint32Array(counts.length + 1);
  for (let i = 0; i < counts.length; ++i) afterBegin[i + 1] = afterBegin[i] + counts[i];
  const text = (name: string) => Array.from(joined(name), (number) => strings[number]);
  return {
    name: text('name'),
    kind: text('kind'),
    detail: text('detail'),
    cls: Uint16Array.from(joined('class')),
    waits: Uint8Array.from(joined('waits')),
    stream: Uint16Array.from(joined('stream')),
    phase: Uint8Array.from(joined('phase')),
    layer: Int32Array.from(joined('layer')),
    microBatch: Int32Array.from(joined('micro_batch')),
    bytes: joined('bytes'),
    busFactor: joined('bus_factor').map((v) => v / 1e6),
    afterBegin,
    after: joined('after'),
  };
}

export interface Dots {
  title: string;
  source: string;
  description: string;
  metric: string;
  across: string;
  kind: 'study' | 'validation' | 'search';
  rows: Record<string, string | number | boolean>[];
}

// What a search found, machine by machine (scenarios/searching/search_machines.h).
export interface Measure {
  key: string;
  title: string;
  unit: string;
  more: boolean; // is better
  // How its range follows that of the step; weeks are counted with a step of their own.
  follows: 'step' | 'reciprocal' | 'run' | 'not';
}
export interface Machine {
  name: string;
  point?: number; // of its best in Machines.points
  run?: number; // of the page, which plays its best
  devices?: number;
  configuration?: string;
  binds?: string;
  capacity?: number; // GiB
  trust?: string;
  why_none?: string;
}
export interface Machines {
  title: string;
  facts: string[];
  sentence: string;
  objectives: string[];
  measures: Measure[];
  machines: Machine[];
  points: {
    machine: number[];
    name: string[];
    low: number[]; // of the step, as multiples of the simulated one
    high: number[];
    run_low?: number[]; // of the step that weeks are counted with, as multiples of that one
    run_high?: number[];
    values: Record<string, (number | null)[]>;
  };
}

export interface Page {
  madeBy: string;
  machines: Machines | null;
  runs: Run[];
  comparison: Json | null;
  tables: Dots[];
  asPipelines: boolean; // begins with a row for each rank of a pipeline
  panel?: string; // that is open at first
  guess?: number; // when somebody thinks that the changed step ends, ns
  onGuess?: (at: number) => void; // it can be dragged
  inColumn?: boolean; // below and above other things, so that all rows are shown
}

// The comparison with its "worst" ops as rows rather than columns.
function withWorst(comparison: Json, column: Unpacked['column']): Json {
  const { strings, ...numbers } = comparison.worst as Json;
  const own = Object.fromEntries(
    Object.entries(numbers as Record<string, number>).map(([name, one]) => [name, column(one)]),
  );
  const worst = Array.from(own.name, (name, i) => ({
    name: strings[name],
    axis: strings[own.axis[i]],
    phase: strings[own.phase[i]],
    layer: own.layer[i],
    occurrence: own.occurrence[i],
    a_seconds: own.a[i] / 1e12,
    b_seconds: own.b[i] / 1e12,
  }));
  return { ...comparison, worst };
}

// `known`: the run that stands where the data have null.
export function readPage(unpacked: Unpacked, known: Run | null = null): Page {
  const header = unpacked.header as Json;
  if (header.schema !== 'rehearse.page.v1')
    throw new Error(`the data are ${header.schema}, and this page reads rehearse.page.v1`);
  const runs = header.runs as (Json | null)[];
  return {
    madeBy: header.made_by,
    runs: runs.map((run) => (run ? new Run(run, unpacked.column) : known!)),
    comparison: header.comparison ? withWorst(header.comparison, unpacked.column) : null,
    machines: header.machines ?? null,
    tables: header.tables,
    asPipelines: header.as_pipelines === true,
  };
}
