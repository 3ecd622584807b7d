// What follows from the spans of a run: lanes, levels of detail, what is exposed, shares of a step.
//
// As in the result of `rehearse run`: a moment of a rank is compute if any kernel runs, exposed if
// only transfers are under way, waiting if it has only arrived at a collective, and otherwise
// bubble (it waits for another stage or does nothing). Where several ops are exposed at once, axes
// share the moment equally, and the ops of an axis its share.
import { Run, type ShownRank } from './data';

// Disjoint intervals, ascending, with the sum of all before each.
export class Intervals {
  readonly sum: Float64Array;
  constructor(
    readonly begin: Float64Array,
    readonly end: Float64Array,
  ) {
    this.sum = new Float64Array(begin.length + 1);
    for (let i = 0; i < begin.length; ++i) this.sum[i + 1] = this.sum[i] + end[i] - begin[i];
  }
  get total(): number {
    return this.sum[this.begin.length];
  }
  // How much of them is before `at`.
  before(at: number): number {
    const i = upper(this.begin, at);
    if (i === 0) return 0;
    return this.sum[i - 1] + Math.min(at, this.end[i - 1]) - this.begin[i - 1];
  }
  within(from: number, to: number): number {
    return this.before(to) - this.before(from);
  }
  // The first that ends after `at`.
  from(at: number): number {
    const i = upper(this.begin, at);
    return i > 0 && this.end[i - 1] > at ? i - 1 : i;
  }
}

// How many values are at most `at`.
export function upper(values: Float64Array, at: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

function union(pairs: { begin: Float64Array; end: Float64Array; order: Uint32Array }): Intervals {
  const begin: number[] = [];
  const end: number[] = [];
  for (const i of pairs.order) {
    const from = pairs.begin[i];
    const to = pairs.end[i];
    if (to <= from) continue;
    const last = end.length - 1;
    if (last >= 0 && from <= end[last]) {
      if (to > end[last]) end[last] = to;
    } else {
      begin.push(from);
      end.push(to);
    }
  }
  return new Intervals(Float64Array.from(begin), Float64Array.from(end));
}

function minus(a: Intervals, b: Intervals): Intervals {
  const begin: number[] = [];
  const end: number[] = [];
  let j = 0;
  for (let i = 0; i < a.begin.length; ++i) {
    let from = a.begin[i];
    const to = a.end[i];
    while (j < b.begin.length && b.end[j] <= from) ++j;
    for (let k = j; k < b.begin.length && b.begin[k] < to; ++k) {
      if (b.begin[k] > from) {
        begin.push(from);
        end.push(b.begin[k]);
      }
      from = Math.max(from, b.end[k]);
    }
    if (from < to) {
      begin.push(from);
      end.push(to);
    }
  }
  return new Intervals(Float64Array.from(begin), Float64Array.from(end));
}

// Spans, or neighbours merged where they are too small to see.
export interface Level {
  shortest: number; // pieces up to this long were merged, ns
  begin: Float64Array;
  end: Float64Array;
  cls: Uint16Array; // that most of the time belongs to
  busy: Float32Array; // share of the time
  count: Uint32Array;
}

export class Lane {
  readonly begin: Float64Array;
  readonly end: Float64Array;
  private readonly levels: Level[] = [];
  constructor(
    readonly run: Run,
    readonly name: string,
    readonly communicates: boolean,
    readonly spans: Uint32Array,
  ) {
    this.begin = new Float64Array(spans.length);
    this.end = new Float64Array(spans.length);
    for (let i = 0; i < spans.length; ++i) {
      this.begin[i] = run.begin[spans[i]];
      this.end[i] = run.end[spans[i]];
    }
  }

  // For pixels of this many nanoseconds; null: the spans themselves.
  level(pixel: number): Level | null {
    let best: Level | null = null;
    for (let i = 0; ; ++i) {
      const shortest = this.run.step / 2 ** (22 - 2 * i);
      if (shortest > pixel * 1.2 || i > 9) return best;
      best = this.levels[i] ??= this.merged(best, shortest);
    }
  }

  private merged(finer: Level | null, shortest: number): Level {
    const n = finer ? finer.begin.length : this.spans.length;
    const from = finer ? finer.begin : this.begin;
    const to = finer ? finer.end : this.end;
    const begin = new Float64Array(n);
    const end = new Float64Array(n);
    const cls = new Uint16Array(n);
    const busy = new Float32Array(n);
    const count = new Uint32Array(n);
    let size = 0;
    const sums = new Float64Array(this.run.classes.length);
    const touched: number[] = [];
    const classOf = (i: number) =>
      finer ? finer.cls[i] : this.run.ops.cls[this.run.op[this.spans[i]]];
    for (let i = 0; i < n;) {
      let j = i;
      let last = to[i];
      let all = 0;
      let pieces = 0;
      touched.length = 0;
      do {
        const took = (to[j] - from[j]) * (finer ? finer.busy[j] : 1);
        const c = classOf(j);
        if (sums[c] === 0) touched.push(c);
        sums[c] += took + 1e-9;
        all += took;
        pieces += finer ? finer.count[j] : 1;
        if (to[j] > last) last = to[j];
        ++j;
      } while (j < n && to[j] - from[i] <= shortest);
      let most = touched[0];
      for (const c of touched) if (sums[c] > sums[most]) most = c;
      for (const c of touched) sums[c] = 0;
      begin[size] = from[i];
      end[size] = last;
      cls[size] = most;
      busy[size] = last > from[i] ? all / (last - from[i]) : 1;
      count[size++] = pieces;
      i = j;
    }
    return {
      shortest,
      begin: begin.slice(0, size),
      end: end.slice(0, size),
      cls: cls.slice(0, size),
      busy: busy.slice(0, size),
      count: count.slice(0, size),
    };
  }

  // The index in the lane of the span at a time, or of the nearest within `near`; or -1.
  at(time: number, near: number): number {
    const i = upper(this.begin, time) - 1;
    if (i >= 0 && this.end[i] >= time) return i;
    const before = i >= 0 ? time - this.end[i] : Infinity;
    const after = i + 1 < this.begin.length ? this.begin[i + 1] - time : Infinity;
    if (Math.min(before, after) > near) return -1;
    return before < after ? i : i + 1;
  }
}

export interface Block {
  begin: number;
  end: number;
  microBatch: number;
  backward: boolean;
}

export interface Shares {
  compute: number;
  exposed: number;
  waiting: number;
  bubble: number;
  hidden: number;
}

// A shown rank of a run, worked out when somebody looks.
export class RankView {
  readonly lanes: Lane[] = [];
  private computeUnion: Intervals | null = null;
  private activeUnion: Intervals | null = null;
  private exposedParts: Intervals | null = null;
  private waitParts: Intervals | null = null;
  private exposedOf: Float64Array | null = null;
  private microBlocks: Block[] | null = null;

  constructor(
    readonly run: Run,
    readonly shown: ShownRank,
  ) {
    const role = run.roles[shown.role];
    const counts = new Uint32Array(role.streams.length);
    for (let i = shown.first; i < shown.end; ++i) ++counts[run.ops.stream[run.op[i]]];
    const lists = Array.from(counts, (count) => new Uint32Array(count));
    counts.fill(0);
    for (let i = shown.first; i < shown.end; ++i) {
      const stream = run.ops.stream[run.op[i]];
      lists[stream][counts[stream]++] = i;
    }
    lists.forEach((list, stream) => {
      if (list.length === 0) return;
      const { name, communicates } = role.streams[stream];
      let isInOrder = true;
      let isApart = true;
      for (let i = 1; i < list.length; ++i) {
        if (run.begin[list[i]] < run.begin[list[i - 1]]) isInOrder = false;
        if (run.begin[list[i]] + 1e-3 < run.end[list[i - 1]]) isApart = false;
      }
      if (!isInOrder) list.sort((a, b) => run.begin[a] - run.begin[b] || a - b);
      if (isInOrder && isApart) {
        this.lanes.push(new Lane(run, name, communicates, list));
        return;
      }
      // What overlaps (measured transfers) gets its own lanes.
      const lanes: number[][] = [];
      const ends: number[] = [];
      for (const span of list) {
        let lane = ends.findIndex((end) => end <= run.begin[span] + 1e-3);
        if (lane < 0) lane = lanes.length < 6 ? lanes.push([]) - 1 : 0;
        lanes[lane].push(span);
        ends[lane] = Math.max(ends[lane] ?? 0, run.end[span]);
      }
      for (const spans of lanes)
        this.lanes.push(new Lane(run, name, communicates, Uint32Array.from(spans)));
    });
    this.lanes.sort((a, b) => Number(a.communicates) - Number(b.communicates));
  }

  private unionOf(
    communicates: boolean,
    begin = this.run.begin,
    end = this.run.end,
    of = (_span: number) => true,
  ): Intervals {
    const lists = this.lanes
      .filter((lane) => lane.communicates === communicates)
      .map((lane) =>
        begin === this.run.begin
          ? this.hasWaits
            ? lane.spans.filter((span) => !this.run.ops.waits[this.run.op[span]])
            : lane.spans
          : lane.spans.filter((span) => end[span] > begin[span] && of(span)),
      );
    const all = new Uint32Array(lists.reduce((sum, list) => sum + list.length, 0));
    let at = 0;
    for (const list of lists) {
      all.set(list, at);
      at += list.length;
    }
    if (lists.length > 1 || begin !== this.run.begin) all.sort((a, b) => begin[a] - begin[b]);
    return union({ begin, end, order: all });
  }

  private get hasWaits(): boolean {
    return this.run.ops.waits.includes(1);
  }
  get compute(): Intervals {
    return (this.computeUnion ??= this.unionOf(false));
  }
  get active(): Intervals {
    return (this.activeUnion ??= this.unionOf(true));
  }
  get exposed(): Intervals {
    return (this.exposedParts ??= minus(this.active, this.compute));
  }

  shares(from = 0, to = this.run.step): Shares {
    // Waiting for another stage is the pipeline's bubble.
    const { ops, op } = this.run;
    const ofCollectives = (span: number) =>
      ops.kind[op[span]] !== 'send' && ops.kind[op[span]] !== 'receive';
    this.waitParts ??= minus(
      minus(this.unionOf(true, this.run.ready, this.run.begin, ofCollectives), this.compute),
      this.active,
    );
    const waits = this.waitParts;
    const compute = this.compute.within(from, to);
    const exposed = this.exposed.within(from, to);
    const waiting = waits.within(from, to);
    return {
      compute,
      exposed,
      waiting,
      bubble: Math.max(to - from - compute - exposed - waiting, 0),
      hidden: this.active.within(from, to) - exposed,
    };
  }

  // By span of the rank, from its first.
  exposedOfSpans(): Float64Array {
    if (this.exposedOf) return this.exposedOf;
    const { run, shown } = this;
    const result = new Float64Array(shown.end - shown.first);
    const edges: { at: number; span: number }[] = [];
    for (const lane of this.lanes) {
      if (!lane.communicates) continue;
      for (const span of lane.spans) {
        if (
          run.end[span] <= run.begin[span] ||
          this.exposed.within(run.begin[span], run.end[span]) <= 0
        )
          continue;
        edges.push({ at: run.begin[span], span }, { at: run.end[span], span: -span - 1 });
      }
    }
    edges.sort((a, b) => a.at - b.at || a.span - b.span);
    const active = new Map<number, Set<number>>(); // by class
    let now = 0;
    for (const { at, span } of edges) {
      if (active.size > 0 && at > now) {
        const exposed = this.exposed.within(now, at);
        if (exposed > 0)
          for (const spans of active.values())
            for (const one of spans)
              result[one - shown.first] += exposed / active.size / spans.size;
      }
      now = at;
      const one = span < 0 ? -span - 1 : span;
      const cls = run.ops.cls[run.op[one]];
      const set = active.get(cls);
      if (span >= 0) {
        if (set) set.add(one);
        else active.set(cls, new Set([one]));
      } else if (set) {
        set.delete(one);
        if (set.size === 0) active.delete(cls);
      }
    }
    return (this.exposedOf = result);
  }

  // Compute of one micro-batch and direction, as a block; none if there is only one micro-batch.
  get blocks(): Block[] {
    if (this.microBlocks) return this.microBlocks;
    const blocks: Block[] = [];
    const { run } = this;
    const seen = new Set<number>();
    for (const lane of this.lanes) {
      if (lane.communicates) continue;
      for (const span of lane.spans) {
        const phase = run.ops.phase[run.op[span]];
        if (phase > 2) continue;
        const microBatch = run.microBatch[span];
        const backward = phase > 0;
        seen.add(microBatch);
        const last = blocks[blocks.length - 1];
        if (last && last.microBatch === microBatch && last.backward === backward)
          last.end = run.end[span];
        else blocks.push({ begin: run.begin[span], end: run.end[span], microBatch, backward });
      }
    }
    return (this.microBlocks = seen.size > 1 ? blocks : []);
  }
}

const views = new WeakMap<Run, Map<number, RankView>>();
export function viewOf(run: Run, shown: ShownRank): RankView {
  let known = views.get(run);
  if (!known) views.set(run, (known = new Map()));
  let view = known.get(shown.rank);
  if (!view) known.set(shown.rank, (view = new RankView(run, shown)));
  return view;
}

// Sums of spans that have something in common, over ranks and a range of time.
export interface Group {
  name: string;
  cls: number;
  spans: number;
  took: number;
  waited: number;
  exposed: number;
  bytes: number;
}
export function groups(
  run: Run,
  ranks: ShownRank[],
  from: number,
  to: number,
  key: (span: number) => string,
): Group[] {
  const found = new Map<string, Group>();
  for (const shown of ranks) {
    const exposed = viewOf(run, shown).exposedOfSpans();
    for (let i = shown.first; i < shown.end; ++i) {
      const begin = Math.max(run.begin[i], from);
      const end = Math.min(run.end[i], to);
      if (end < begin || (end === begin && run.end[i] > run.begin[i])) continue;
      const name = key(i);
      let group = found.get(name);
      if (!group) {
        group = {
          name,
          cls: run.ops.cls[run.op[i]],
          spans: 0,
          took: 0,
          waited: 0,
          exposed: 0,
          bytes: 0,
        };
        found.set(name, group);
      }
      const took = run.end[i] - run.begin[i];
      const share = took > 0 ? (end - begin) / took : 1;
      ++group.spans;
      group.took += end - begin;
      group.waited +=
        run.ready[i] >= from ? Math.max(Math.min(run.begin[i], to) - run.ready[i], 0) : 0;
      group.exposed += exposed[i - shown.first] * share;
      group.bytes += run.bytesOf(i) * share;
    }
  }
  return [...found.values()];
}

export function loadAt(link: { at: Float64Array; share: Float64Array }, time: number): number {
  const i = upper(link.at, time);
  return i > 0 ? link.share[i - 1] / 1000 : 0;
}
