// Points of studies and rows of validations as dots.
import uPlot from 'uplot';

import type { Dots } from './data';
import { h, table, type Column } from './text';
import type { Panel } from './panel';
import { color } from './paint';

const kHues = [
  '#2f7fd1',
  '#f08a24',
  '#17a398',
  '#cf2f6e',
  '#8f5bd1',
  '#e3b505',
  '#9a5a2c',
  '#7a9a01',
  '#5c6f82',
  '#f2798f',
];

export function dotsPanel(dots: Dots, index: number): Panel {
  // What a row does not have is null in the data.
  const rows = dots.rows.map((row) =>
    Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)),
  );
  const numbers = [
    ...new Set(
      rows.flatMap((row) => Object.keys(row).filter((key) => typeof row[key] === 'number')),
    ),
  ];
  const texts = [
    ...new Set(
      rows.flatMap((row) => Object.keys(row).filter((key) => typeof row[key] === 'string')),
    ),
  ];
  const isValidation = dots.kind === 'validation';
  const kOrder = 'in order';
  let x =
    isValidation && numbers.includes('measured_seconds')
      ? 'measured_seconds'
      : dots.across && numbers.includes(dots.across)
        ? dots.across
        : dots.kind === 'search' && numbers.includes('formula')
          ? 'formula'
          : kOrder;
  let y =
    isValidation && numbers.includes('predicted_seconds')
      ? 'predicted_seconds'
      : (numbers.find((name) => name === dots.metric) ??
        numbers.find((name) => /seconds|ratio/.test(name)) ??
        numbers[0] ??
        '');
  const plot = h('div', { class: 'plot' });
  const what = h('p', { class: 'note' }, 'Point at a dot to read it.');
  const pick = (label: string, names: string[], value: string, changed: (name: string) => void) => {
    const select = h(
      'select',
      {
        change: () => {
          changed(select.value);
          draw();
        },
      },
      ...names.map((name) => h('option', { selected: name === value }, name)),
    );
    return h('label', {}, label, select);
  };
  const nameOf = (row: Dots['rows'][number]) =>
    String(row['row'] ?? row['point'] ?? row['configuration'] ?? row['name'] ?? '');
  let chart: uPlot | null = null;

  const draw = () => {
    chart?.destroy();
    chart = null;
    if (!plot.offsetParent || !y) return;
    const points = rows
      .map((row, i) => ({ row, i, x: x === kOrder ? i + 1 : Number(row[x]), y: Number(row[y]) }))
      .filter((point) => Number.isFinite(point.x) && Number.isFinite(point.y))
      .sort((a, b) => a.x - b.x);
    if (points.length === 0) {
      plot.replaceChildren(h('p', { class: 'note' }, 'no row has both numbers'));
      return;
    }
    plot.replaceChildren();
    const groupOf = (row: Dots['rows'][number]) =>
      String(
        row['group'] ??
          (dots.kind !== 'search'
            ? ''
            : row['on_front'] === true
              ? 'Pareto front'
              : 'configurations'),
      );
    const names = [...new Set(points.map((point) => groupOf(point.row)))];
    const xs = points.map((point) => point.x);
    const series: uPlot.Series[] = [{ label: x }];
    const data: (number | null)[][] = [xs];
    names.forEach((name, i) => {
      data.push(points.map((point) => (groupOf(point.row) === name ? point.y : null)));
      const ink = kHues[i % kHues.length];
      series.push({
        label: name || y,
        stroke: ink,
        paths: () => null,
        points: {
          show: true,
          size: 8,
          fill: i < kHues.length ? ink : color('--back'),
          stroke: ink,
          width: 1.5,
        },
      });
    });
    const isLog =
      isValidation &&
      Math.min(...xs, ...points.map((point) => point.y)) > 0 &&
      Math.max(...xs) / Math.min(...xs) > 8;
    if (x.replace('measured', '') === y.replace('predicted', '')) {
      for (const [factor, label] of [
        [1, 'as measured'],
        [1.1, '10 % more'],
        [0.9, '10 % less'],
      ] as const) {
        data.push(xs.map((value) => value * factor));
        series.push({
          label,
          stroke: color('--faint'),
          width: factor === 1 ? 1.5 : 1,
          dash: factor === 1 ? [] : [5, 4],
          points: { show: false },
        });
      }
    }
    // The front: no point is better in both than these.
    if (names.includes('Pareto front') && x === dots.across && y === dots.metric) {
      data.push(points.map((point) => (point.row['on_front'] === true ? point.y : null)));
      series.push({
        label: 'the front',
        stroke: color('--ink'),
        width: 1.5,
        spanGaps: true,
        points: { show: false },
      });
    }
    const published =
      y === dots.metric && x === kOrder && numbers.includes('published')
        ? points.map((point) =>
            typeof point.row['published'] === 'number' ? point.row['published'] : null,
          )
        : null;
    if (published?.some((value) => value !== null)) {
      data.push(published);
      series.push({
        label: 'published',
        stroke: color('--ink'),
        paths: () => null,
        points: { show: true, size: 11, fill: 'transparent', stroke: color('--ink'), width: 1.5 },
      });
    }
    const axis = (label: string): uPlot.Axis => ({
      label,
      stroke: color('--ink'),
      grid: { stroke: color('--grid') },
      ticks: { stroke: color('--grid') },
      font: '11px system-ui',
      labelFont: '12px system-ui',
    });
    chart = new uPlot(
      {
        width: Math.max(plot.clientWidth, 300),
        height: Math.max(plot.clientHeight - 60, 240),
        scales: { x: { time: false, distr: isLog ? 3 : 1 }, y: { distr: isLog ? 3 : 1 } },
        axes: [axis(x), { ...axis(y), size: 70 }],
        series,
        cursor: { drag: { x: true, y: true } },
        hooks: {
          setCursor: [
            (one) => {
              const left = one.cursor.left ?? -1;
              const top = one.cursor.top ?? -1;
              if (left < 0) return;
              let best = -1;
              let distance = 900;
              points.forEach((point, i) => {
                const far =
                  (one.valToPos(point.x, 'x') - left) ** 2 +
                  (one.valToPos(point.y, 'y') - top) ** 2;
                if (far < distance) {
                  distance = far;
                  best = i;
                }
              });
              if (best >= 0) {
                const { row } = points[best];
                what.textContent =
                  `${nameOf(row)}: ${x === kOrder ? '' : `${x} ${row[x]}, `}${y} ${row[y]}` +
                  (row['relative_error'] !== undefined
                    ? `, error ${(Number(row['relative_error']) * 100).toFixed(1)} %`
                    : '');
              }
            },
          ],
        },
        legend: { show: names.length < 14, live: false },
      },
      data as uPlot.AlignedData,
      plot,
    );
  };
  const columns: Column<Dots['rows'][number]>[] = [...texts.slice(0, 3), ...numbers]
    .slice(0, 14)
    .map((name) => ({
      name,
      text: (row) =>
        row[name] === undefined
          ? ''
          : typeof row[name] === 'number'
            ? String(Number((row[name] as number).toPrecision(5)))
            : String(row[name]),
      value: (row) =>
        row[name] === undefined
          ? numbers.includes(name)
            ? -Infinity
            : ''
          : typeof row[name] === 'number'
            ? (row[name] as number)
            : String(row[name]),
    }));
  const element = h(
    'div',
    { class: 'panel' },
    h('h3', {}, dots.title),
    dots.description ? h('p', { class: 'note' }, dots.description) : null,
    h(
      'p',
      { class: 'controls' },
      pick('Across ', [kOrder, ...numbers], x, (name) => {
        x = name;
      }),
      pick('Up ', numbers, y, (name) => {
        y = name;
      }),
      what,
    ),
    plot,
    h('h3', {}, 'All rows'),
    table(columns, rows, { label: dots.title }),
  );
  new ResizeObserver(() => draw()).observe(plot);
  return {
    id: `dots${index}`,
    name: dots.title.length > 30 ? `${dots.title.slice(0, 28)}\u2026` : dots.title,
    element,
    show: draw,
  };
}
