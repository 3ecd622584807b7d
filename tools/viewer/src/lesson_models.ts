// What can be dragged in a lesson's sentence, the changes of its scenario that follow from it, and the
// step as one works it out by hand. Times are milliseconds, sizes MB.

export type Values = Record<string, number>;

export interface Variable {
  name: string; // as formulas call it
  values: number[]; // in rising order
  now: number; // as the lesson has it
  changed?: number; // by the lesson's change
  text: (value: number) => string;
  label: string; // of the axis
}

export interface Model {
  sentence: string; // {p} is the variable p
  variables: Variable[];
  // Of the lesson's scenario, with or without the lesson's change.
  changes: (v: Values, isChanged: boolean) => string[];
  formula: [string, string]; // as it is, changed
  closed: (v: Values, isChanged: boolean) => number | null; // null: nobody would do it by hand
  within: number; // relative error of that
}

// The same numbers, but those that the lesson's change moves.
export const withoutChange = (model: Model, values: Values): Values =>
  Object.fromEntries(
    model.variables.map((one) => [one.name, one.changed === undefined ? values[one.name] : one.now]),
  );

const kBandwidth = 25; // GB/s, that is MB/ms, of each cable
const kHop = 0.002; // over a switch

const range = (from: number, to: number, by = 1): number[] =>
  Array.from({ length: Math.floor((to - from) / by + 1e-9) + 1 }, (_, i) => from + i * by);
const plain = (value: number) => String(value);
const inMb = (value: number) => (value < 1 ? `${Math.round(value * 1000)} kB` : `${value} MB`);
const inMs = (value: number) => `${value} ms`;
const times = (value: number) => `${value} times`;

const ranks = (now: number, values: number[], changed?: number): Variable =>
  ({ name: 'p', values, now, changed, text: plain, label: 'GPUs' });
const size = (now: number, values: number[], label = 'bytes'): Variable =>
  ({ name: 'n', values, now, text: inMb, label });
const duration = (name: string, now: number, label: string, values = range(1, 10)): Variable =>
  ({ name, values, now, text: inMs, label });
const count = (name: string, now: number, values: number[], label: string): Variable =>
  ({ name, values, now, text: plain, label });

const set = (path: string, value: unknown) =>
  `${path}=${typeof value === 'object' ? JSON.stringify(value) : String(value)}`;
const ofSchedule = (key: string, value: unknown) => set(`jobs.0.schedule.${key}`, value);
const bytesOf = (mb: number) => `${Math.round(mb * 1e6)}B`;
const durationOf = (ms: number) => `${ms}ms`;
const aSwitch = (p: number) => [set('cluster.devices', p), ofSchedule('ranks', p)];

const ring = (p: number, n: number) =>
  ((2 * (p - 1)) / p) * (n / kBandwidth) + 2 * (p - 1) * kHop;
const sumOfTwo = (n: number) => ring(2, n);

// Equal layers of 10,000 columns, of which a row takes 2e8 operations at 100 TFLOP/s.
const pipeline = (p: number, layers: number) => [
  set('cluster.nodes', p),
  set('pipeline.stages', p),
  set('model.sizes', Array.from({ length: layers + 1 }, () => 10000)),
];

export const kModels: Record<string, Model> = {
  ring: {
    sentence: '{p} GPUs sum {n} around a ring.',
    variables: [
      ranks(4, range(2, 16), 8),
      size(100, [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 150, 200]),
    ],
    changes: ({ p, n }) => [...aSwitch(p), ofSchedule('ops.0.bytes', bytesOf(n))],
    formula: ['2(p-1)/p x n/B + 2(p-1) x 2 us', '2(p-1)/p x n/B + 2(p-1) x 2 us'],
    closed: ({ p, n }) => ring(p, n),
    within: 1e-4,
  },
  'two-rings': {
    sentence: 'Machines with {g} GPUs and {k} NICs: each GPU sums {n} with its like.',
    variables: [
      count('g', 2, [1, 2, 4], 'GPUs a machine'),
      { ...count('k', 1, [1, 2], 'NICs a machine'), changed: 2 },
      size(100, range(20, 200, 20)),
    ],
    changes: ({ g, k, n }) => [
      set('cluster.node.devices', g),
      set('cluster.node.nics', k),
      ofSchedule('ranks', 2 * g),
      ofSchedule('communicators.0.groups', range(0, g - 1).map((i) => [i, g + i])),
      ofSchedule('ops.0.bytes', bytesOf(n)),
    ],
    formula: ['g/k x n/B + 12 us', 'g/k x n/B + 12 us'],
    closed: ({ g, k, n }) => ((g / k) * n) / kBandwidth + 0.012,
    within: 1e-3,
  },
  'beside-dw': {
    sentence: '{L} layers: dX takes {x}, its sum of {n} is waited for, dW takes {w}.',
    variables: [
      count('L', 2, range(1, 8), 'layers'),
      duration('x', 4, 'dX'),
      size(75, range(25, 250, 25), 'bytes of a sum'),
      duration('w', 4, 'dW'),
    ],
    changes: ({ L, x, n, w }, isChanged) => [
      ofSchedule(
        'ops',
        range(0, L - 1).flatMap((i) => {
          const at = { phase: 'backward', layer: L - 1 - i };
          const k = L - i;
          return [
            { name: `dX of layer ${k}`, duration: durationOf(x), ...at, ...(i > 0 && { after: `sum dX ${k + 1}` }) },
            { name: `sum dX ${k}`, collective: 'all-reduce', communicator: 'tensor', bytes: bytesOf(n), ...at, after: `dX of layer ${k}` },
            { name: `dW of layer ${k}`, duration: durationOf(w), ...at, after: isChanged ? `dX of layer ${k}` : `sum dX ${k}` },
          ];
        }),
      ),
    ],
    formula: ['L (dX + n/B + 4 us + dW)', 'L (dX + max(n/B + 4 us, dW))'],
    closed: ({ L, x, n, w }, isChanged) =>
      L * (x + (isChanged ? Math.max(sumOfTwo(n), w) : sumOfTwo(n) + w)),
    within: 1e-4,
  },
  prefetch: {
    sentence: '{L} layers of {c}; the {n} of weights of each are gathered {d} layers ahead.',
    variables: [
      count('L', 4, range(1, 12), 'layers'),
      duration('c', 3, 'a layer'),
      size(100, range(25, 300, 25), 'bytes of a layer'),
      { ...count('d', 0, range(0, 3), 'layers that are gathered ahead'), changed: 1 },
    ],
    changes: ({ L, c, n, d }) => [
      ofSchedule(
        'ops',
        range(1, L).flatMap((k) => [
          {
            name: `gather ${k}`, collective: 'all-gather', communicator: 'shard', bytes: bytesOf(n), layer: k - 1,
            ...(k - 1 - d > 0 && { after: `layer ${k - 1 - d}` }),
          },
          { name: `layer ${k}`, duration: durationOf(c), layer: k - 1, after: `gather ${k}` },
        ]),
      ),
    ],
    formula: ['L (g + c), g = n/2B + 2 us', 'max(g + L c, L g + c), g = n/2B + 2 us'],
    closed: ({ L, c, n, d }) => {
      const g = n / 2 / kBandwidth + kHop;
      return d === 0 ? L * (g + c) : Math.max(g + L * c, L * g + c);
    },
    within: 1e-4,
  },
  chunks: {
    sentence: 'A product of {c} in {k} chunks, whose sum has {n}.',
    variables: [
      count('k', 4, [1, 2, 4, 5, 8, 10, 16, 20, 32, 50], 'chunks'),
      duration('c', 8, 'the product', range(1, 16)),
      size(200, range(25, 400, 25), 'bytes of the sum'),
    ],
    changes: ({ k, c, n }, isChanged) => [
      ofSchedule('ops', [
        ...range(1, k).map((i) => ({ name: `product ${i}`, duration: `${Math.round((c * 1e6) / k)}ns` })),
        ...range(1, k).map((i) => ({
          name: `sum ${i}`, collective: 'all-reduce', communicator: 'tensor', bytes: bytesOf(n / k),
          after: `product ${isChanged ? i : k}`,
        })),
      ]),
    ],
    formula: ['c + s, s = n/B + k x 4 us', 'max(c/k + s, c + s/k), s = n/B + k x 4 us'],
    closed: ({ k, c, n }, isChanged) => {
      const s = k * sumOfTwo(n / k);
      return isChanged ? Math.max(c / k + s, c + s / k) : c + s;
    },
    within: 1e-4,
  },
  straggler: {
    sentence: '{p} GPUs compute for {c} and sum {n}; with the change one takes {x} as long.',
    variables: [
      ranks(4, range(2, 16)),
      duration('c', 10, 'computing', range(2, 20, 2)),
      size(100, range(25, 200, 25)),
      { name: 'x', values: range(1, 3, 0.25), now: 1.5, text: times, label: 'the slow one, times' },
    ],
    changes: ({ p, c, n, x }, isChanged) => [
      ...aSwitch(p),
      ofSchedule('ops.0.duration', durationOf(c)),
      ofSchedule('ops.1.bytes', bytesOf(n)),
      ...(isChanged
        ? [set('simulator.perturbation', { stragglers: [{ devices: 'node1/**', compute_time: `${x}x` }] })]
        : []),
    ],
    formula: ['c + ring', 'x c + ring'],
    closed: ({ p, c, n, x }, isChanged) => (isChanged ? x : 1) * c + ring(p, n),
    within: 1e-4,
  },
  bubble: {
    sentence: '{p} stages, the batch in {m} micro-batches.',
    variables: [
      { ...count('m', 4, [2, 4, 5, 8, 10, 16, 20, 25, 40], 'micro-batches'), changed: 20 },
      count('p', 4, range(2, 8), 'stages'),
    ],
    changes: ({ m, p }) => [...pipeline(p, p), set('training.micro_batches', m)],
    formula: ['(m + p - 1)(f + b) - b/2, f = 20 ms/m, b = 2 f', '(m + p - 1)(f + b) - b/2, f = 20 ms/m, b = 2 f'],
    closed: ({ m, p }) => (m + p - 1) * (60 / m) - 20 / m,
    within: 0.01,
  },
  experts: {
    sentence:
      '{p} GPUs send {n} of tokens each; experts take 2 ms of an even share. With the change one ' +
      'of them gets {h}.',
    variables: [
      ranks(4, range(2, 8)),
      size(100, range(20, 200, 20)),
      { name: 'h', values: range(30, 90, 10), now: 40, text: (value) => `${value} %`, label: 'share of the popular expert, %' },
    ],
    changes: ({ p, n, h }, isChanged) => {
      const share = (to: number) =>
        !isChanged ? 1 / p : to === 0 ? h / 100 : (1 - h / 100) / (p - 1);
      const pair = (to: number) => Math.round(n * 1e6 * share(to));
      const there = range(0, p - 1).map(() => range(0, p - 1).map(pair));
      const back = range(0, p - 1).map((from) => range(0, p - 1).map(() => pair(from)));
      const most = (rows: number[][]) =>
        Math.max(...rows.map((row) => row.reduce((sum, one) => sum + one, 0)));
      const exchange = (op: number, rows: number[][]) => [
        ofSchedule(`ops.${op}.bytes`, `${most(rows)}B`),
        ofSchedule(`ops.${op}.pair_bytes`, rows.map((row) => row.map((one) => `${one}B`))),
      ];
      if (!isChanged) return [...aSwitch(p), ...[0, 2].map((op) => ofSchedule(`ops.${op}.bytes`, bytesOf(n)))];
      const slow = Math.max((p * h) / 100, 1).toPrecision(6);
      return [
        ...aSwitch(p),
        ...exchange(0, there),
        ...exchange(2, back),
        set('simulator.perturbation', {
          stragglers: [{ devices: 'node0/**', compute_time: `${Number(slow)}x` }],
        }),
      ];
    },
    formula: [
      '2(p-1)(n/p/B + 2 us) + 2 ms',
      '2(p-1)(h n/B + 2 us) + p h x 2 ms',
    ],
    closed: ({ p, n, h }, isChanged) => {
      const share = isChanged ? Math.max(h / 100, (1 - h / 100) / (p - 1)) : 1 / p;
      const slowest = isChanged ? Math.max((p * h) / 100, 1) : 1;
      return 2 * (p - 1) * ((share * n) / kBandwidth + kHop) + 2 * slowest;
    },
    within: 1e-3,
  },
  tree: {
    sentence: '{p} GPUs sum {n}; with the change by a tree.',
    variables: [
      size(0.1, [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20]),
      ranks(16, [4, 8, 16, 32, 64]),
    ],
    changes: ({ p, n }, isChanged) => [
      ...aSwitch(p),
      ofSchedule('ops.0.bytes', bytesOf(n)),
      ...(isChanged ? [ofSchedule('ops.0.algorithm', 'tree')] : []),
    ],
    formula: ['2(p-1)/p x n/B + 2(p-1) x 2 us', '2 log p hops and the pieces that follow each other'],
    closed: ({ p, n }, isChanged) => (isChanged ? null : ring(p, n)),
    within: 1e-4,
  },
  ecmp: {
    sentence: 'Two pairs exchange {n} each.',
    variables: [size(100, range(20, 200, 20))],
    changes: ({ n }, isChanged) => [
      ofSchedule('ops.0.bytes', bytesOf(n)),
      ...(isChanged ? ['cluster.fabric.routing=spray'] : []),
    ],
    formula: ['2 n/B + 4 us', 'n/B + 4 us'],
    closed: ({ n }, isChanged) => ((isChanged ? 1 : 2) * n) / kBandwidth + 0.004,
    within: 1e-3,
  },
  'zero-bubble': {
    sentence: '{p} stages of 2 ms for each of F, B and W, {m} micro-batches.',
    variables: [
      count('m', 8, range(4, 24), 'micro-batches'),
      count('p', 4, range(2, 6), 'stages'),
    ],
    changes: ({ m, p }, isChanged) => [
      ...pipeline(p, 2 * p),
      set('training.batch', 500 * m),
      set('training.micro_batches', m),
      ...(isChanged ? ['pipeline.schedule=zb-h1'] : []),
    ],
    formula: ['(m + p - 1)(F + B + W) - 1 ms', 'm (F + B + W) + (p-1)(F + B - W)'],
    closed: ({ m, p }, isChanged) => (isChanged ? 6 * m + 2 * (p - 1) : 6 * (m + p - 1) - 1),
    within: 0.01,
  },
  transposed: {
    sentence: '{L} layers of {c}, with sums of {n} on a grid of 2 x 2.',
    variables: [
      count('L', 2, range(1, 8), 'layers'),
      duration('c', 4, 'a layer'),
      size(50, range(10, 100, 10), 'bytes of a sum'),
    ],
    changes: ({ L, c, n }, isChanged) => {
      const ops = (turns: boolean) =>
        range(1, L).flatMap((k) => [
          { name: `layer ${k}`, duration: durationOf(c), ...(k > 1 && { after: turns ? `turn ${k - 1}` : `sum ${k - 1}` }) },
          {
            name: `sum ${k}`, collective: 'all-reduce', communicator: isChanged && k % 2 === 0 ? 'row' : 'column',
            bytes: bytesOf(n), after: `layer ${k}`,
          },
          ...(turns && k < L
            ? [{ name: `turn ${k}`, collective: 'send-receive', communicator: 'turn', bytes: bytesOf(n), after: `sum ${k}` }]
            : []),
        ]);
      return [
        ...(isChanged ? [ofSchedule('role_of_rank', [['on the diagonal', 4]])] : []),
        ofSchedule('roles.0.ops', ops(false)),
        ofSchedule('roles.1.ops', ops(true)),
      ];
    },
    formula: ['L (c + n/B + 4 us) + (L-1)(n/B + 2 us)', 'L (c + n/B + 4 us)'],
    closed: ({ L, c, n }, isChanged) =>
      L * (c + sumOfTwo(n)) + (isChanged ? 0 : (L - 1) * (n / kBandwidth + kHop)),
    within: 1e-3,
  },
  incast: {
    sentence: '{n} from each GPU, and {c} of work.',
    variables: [size(100, range(40, 200, 20)), duration('c', 10, 'of work')],
    changes: ({ n, c }, isChanged) => [
      ...[0, 1, 3].map((role) => ofSchedule(`roles.${role}.ops.0.bytes`, bytesOf(n))),
      ...[0, 1, 2].map((op) => ofSchedule(`roles.2.ops.${op}.bytes`, bytesOf(n))),
      ofSchedule('roles.3.ops.1.duration', durationOf(c)),
      ...(isChanged ? ['simulator.network.rate_control=swift'] : []),
    ],
    formula: ['3 n/B + c', 'max(n/B + c, 3 n/B)'],
    closed: ({ n, c }, isChanged) => {
      const once = n / kBandwidth;
      return isChanged ? Math.max(once + c, 3 * once) : 3 * once + c;
    },
    within: 0.01,
  },
};
