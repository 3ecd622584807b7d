// A minus B: what `rehearse compare` says about two steps, and where the gap comes from.
import type { Panel } from './panel';
import type { State } from './state';
import { type Column, h, percent, s, table, time } from './text';

type Json = Record<string, any>;

// What a scenario says at a path, in a cell.
function said(value: unknown): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > 160 ? `${text.slice(0, 159)}\u2026` : text;
}

function howMuch(difference: number, of: number): string {
  if (difference === 0) return 'A takes as long';
  return (
    `A takes ${time(Math.abs(difference))} ${difference > 0 ? 'more' : 'less'} ` +
    `(${percent(Math.abs(difference) / of)})`
  );
}

export function comparePanel(state: State): Panel | null {
  const all = state.page.comparison;
  if (!all) return null;
  const [a, b] = state.page.runs;
  const ns = (value: number) => value * 1e9;
  const signed = (value: number) => `${value > 0 ? '+' : ''}${time(ns(value))}`;

  // Rows of the steps' shares, under the keys of `rehearse compare --format json`.
  const parts = [
    'compute_seconds',
    'exposed_communication_seconds',
    'waiting_seconds',
    'other_seconds',
  ];
  const labels = ['compute', 'exposed communication', 'waiting for others', 'none of these'];
  const share = (side: 'a' | 'b', part: string): number =>
    Number(all['gap']?.[part]?.[side] ?? NaN);
  const most = Math.max(a.step, b.step) / 1e9;
  const bars = s('svg', {
    viewBox: '0 0 900 64',
    class: 'bars',
    role: 'img',
    'aria-label': 'Where the time of both goes',
  });
  const classes = ['compute', 'exposed', 'waiting', 'bubble'];
  (['a', 'b'] as const).forEach((side, i) => {
    let x = 30;
    bars.append(s('text', { x: 8, y: i * 30 + 20, class: 'label' }, side.toUpperCase()));
    parts.forEach((part, j) => {
      const value = share(side, part);
      if (!(value > 0)) return;
      const wide = (value / most) * 780;
      const rect = s('rect', {
        x,
        y: i * 30 + 4,
        width: wide,
        height: 22,
        class: `part-${classes[j]}`,
      });
      rect.append(s('title', {}, `${side.toUpperCase()}: ${labels[j]} ${time(ns(value))}`));
      bars.append(rect);
      x += wide;
    });
    bars.append(
      s('text', { x: x + 6, y: i * 30 + 20, class: 'value' }, time((side === 'a' ? a : b).step)),
    );
  });

  interface Row {
    name: string;
    layer: string;
    a: number;
    b: number;
  }
  const pairs = (list: Json[] | undefined): Row[] =>
    (list ?? []).map((one) => ({
      name: String(one.name ?? ''),
      layer: [
        one.phase,
        one.layer >= 0 ? `layer ${one.layer}` : '',
        one.axis,
        one.occurrence > 0 ? `#${one.occurrence + 1}` : '',
      ]
        .filter((part) => part)
        .join(', '),
      a: Number(one.a_seconds ?? one.total?.a_seconds ?? 0),
      b: Number(one.b_seconds ?? one.total?.b_seconds ?? 0),
    }));
  const columns = (what: string, withLayer: boolean): Column<Row>[] => [
    { name: what, text: (row) => row.name, value: (row) => row.name },
    ...(withLayer
      ? [{ name: 'where', text: (row: Row) => row.layer, value: (row: Row) => row.layer }]
      : []),
    { name: 'A', text: (row) => time(ns(row.a)), value: (row) => row.a },
    { name: 'B', text: (row) => time(ns(row.b)), value: (row) => row.b },
    {
      name: 'A \u2212 B',
      text: (row) => signed(row.a - row.b),
      value: (row) => Math.abs(row.a - row.b),
    },
    {
      name: 'of B',
      text: (row) => (row.b > 0 ? percent((row.a - row.b) / row.b) : ''),
      value: (row) => (row.b > 0 ? (row.a - row.b) / row.b : 0),
    },
  ];
  const list = (title: string, what: string, rows: Row[], withLayer = false) =>
    rows.length === 0
      ? null
      : h(
          'div',
          {},
          h('h3', {}, title),
          table(columns(what, withLayer), rows, { sort: withLayer ? 4 : 3, label: title }),
        );
  const warnings = ((all['warnings'] as string[] | undefined) ?? []).map((text) =>
    h('p', { class: 'note' }, text),
  );
  const given = ((all['given'] as Json[] | undefined) ?? []).slice(0, 12);
  const element = h(
    'div',
    { class: 'panel' },
    h(
      'h3',
      {},
      `A ${time(a.step)}, B ${time(b.step)}: ` + howMuch(a.step - b.step, b.step),
    ),
    ...warnings,
    bars,
    h(
      'p',
      { class: 'legend' },
      ...labels.map((label, i) =>
        h('span', {}, h('i', { class: 'swatch', style: `background:var(--${classes[i]})` }), label),
      ),
    ),
    all['only_in_a'] + all['only_in_b'] > 0 &&
      h(
        'p',
        { class: 'note' },
        `${all['only_in_a']} kinds of ops are only in A, ${all['only_in_b']} only in B; the ` +
        'tables show what both have',
      ),
    given.length > 0 &&
      h(
        'div',
        {},
        h('h3', {}, 'How the scenarios differ'),
        h(
          'table',
          {},
          h(
            'tbody',
            {},
            ...given.map((one) =>
              h(
                'tr',
                {},
                h('td', {}, one.path),
                h('td', {}, said(one.a)),
                h('td', {}, said(one.b)),
              ),
            ),
          ),
        ),
      ),
    h(
      'div',
      { class: 'columns' },
      list('By axis (mean over ranks)', 'axis', pairs(all['by_axis'])),
      list('By kind', 'kind', pairs(all['by_kind'])),
      list('By layer', 'layer', pairs(all['by_layer'])),
      list('Ops that differ most', 'op', pairs(all['worst']), true),
    ),
  );
  return { id: 'compare', name: 'A \u2212 B', element, show: () => {} };
}
