// All simulated configurations of a search as an SVG: two measures, ranges, fronts, and the best of
// each machine by name.
import type { Machines } from './data';
import { range, rangedOf, short, type Ranged, type Shown } from './machines';
import { inkOf, shapeAt } from './marks';
import { s } from './text';

export interface ScatterStyle {
  width: number;
  height: number;
  ink: string;
  faint: string;
  grid: string;
  back: string;
  point?: (text: string) => void; // at a dot; "" when nowhere
}

interface Dot {
  point: number;
  machine: number;
  isBest: boolean;
  onFront: boolean;
  x: Ranged;
  y: Ranged;
}

const kLeft = 78;
const kRight = 22;
const kTop = 14;
const kBottom = 46;
const kMostLinear = 10; // times the least value; above that, an axis is logarithmic
const kMostRanges = 150; // beyond that only fronts and bests have theirs

interface Scale {
  at: (value: number) => number;
  marks: number[];
}

function scaleOf(values: number[], from: number, to: number): Scale {
  let least = Math.min(...values);
  let most = Math.max(...values);
  if (least > 0 && most > kMostLinear * least) {
    const low = Math.log10(least) - 0.05;
    const high = Math.log10(most) + 0.05;
    const marks: number[] = [];
    const decades = high - low;
    for (let power = Math.floor(low); power <= Math.ceil(high); ++power)
      for (const digit of decades > 4 ? [1] : decades > 1.6 ? [1, 3] : [1, 2, 5])
        marks.push(digit * 10 ** power);
    return {
      at: (value) => from + ((Math.log10(value) - low) / (high - low)) * (to - from),
      marks: marks.filter((one) => Math.log10(one) >= low && Math.log10(one) <= high),
    };
  }
  const room = (most - least || Math.abs(most) || 1) * 0.06;
  least = least >= 0 ? Math.max(0, least - room) : least - room;
  most += room;
  const rough = (most - least) / 6;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough)!;
  const marks: number[] = [];
  for (let i = Math.ceil(least / step); i * step <= most; ++i) marks.push(i * step);
  return { at: (value) => from + ((value - least) / (most - least)) * (to - from), marks };
}

// Those that no other is better than in both.
export function frontOf<One extends { x: Ranged; y: Ranged }>(dots: One[], x: Shown, y: Shown): One[] {
  const cost = (measure: Shown, value: number) => (measure.more ? -value : value);
  const sorted = [...dots].sort(
    (a, b) =>
      cost(x, a.x.value) - cost(x, b.x.value) || cost(y, a.y.value) - cost(y, b.y.value),
  );
  let best = Infinity;
  return sorted.filter((dot) => {
    const own = cost(y, dot.y.value);
    if (own >= best) return false;
    best = own;
    return true;
  });
}

// Beside its dot where no other name and no best is, if there is such a place.
function placeLabel(
  at: { x: number; y: number },
  width: number,
  taken: [number, number, number, number][],
  style: ScatterStyle,
): { x: number; y: number } {
  const high = 14;
  const places = [
    [10, -high - 5],
    [-10 - width, -high - 5],
    [10, 5],
    [-10 - width, 5],
    [12, -high / 2],
    [-12 - width, -high / 2],
    [-width / 2, -high - 10],
    [-width / 2, 10],
  ];
  let best = { x: at.x + 12, y: at.y - high / 2 };
  let least = Infinity;
  for (const [dx, dy] of places) {
    const x = at.x + dx;
    const y = at.y + dy;
    let cost = 0;
    if (x < kLeft || x + width > style.width - kRight || y < 0 || y + high > style.height - kBottom)
      cost += 1e6;
    for (const [left, top, right, bottom] of taken)
      cost +=
        Math.max(0, Math.min(right, x + width) - Math.max(left, x)) *
        Math.max(0, Math.min(bottom, y + high) - Math.max(top, y));
    if (cost < least) {
      least = cost;
      best = { x, y };
    }
  }
  taken.push([best.x, best.y, best.x + width, best.y + high]);
  return {
    x: Math.max(kLeft, Math.min(best.x, style.width - kRight - width)),
    y: best.y + high - 3,
  };
}

let pen: CanvasRenderingContext2D | null = null;
function widthOf(text: string): number {
  pen ??= document.createElement('canvas').getContext('2d')!;
  pen.font = 'bold 12px system-ui, sans-serif';
  return pen.measureText(text).width;
}

export function scatter(machines: Machines, x: Shown, y: Shown, style: ScatterStyle): SVGElement {
  const { points } = machines;
  const bests = new Set(machines.machines.map((one) => one.point));
  const dots: Dot[] = [];
  points.machine.forEach((machine, point) => {
    const across = rangedOf(machines, x, point);
    const up = rangedOf(machines, y, point);
    if (across && up)
      dots.push({ point, machine, isBest: bests.has(point), onFront: false, x: across, y: up });
  });
  const { width, height } = style;
  const picture = s('svg', {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: 'img',
    'aria-label': `${y.title} against ${x.title}`,
    'font-family': 'system-ui, sans-serif',
    'font-size': 12,
    fill: style.ink,
  });
  const add = (tag: string, attributes: Record<string, string | number>, ...text: string[]) => {
    const element = s(tag, attributes, ...text);
    picture.append(element);
    return element;
  };
  if (dots.length === 0) {
    add('text', { x: kLeft, y: 40 }, 'no configuration has both numbers');
    return picture;
  }
  const fronts = machines.machines.map((_, i) =>
    frontOf(
      dots.filter((dot) => dot.machine === i),
      x,
      y,
    ),
  );
  for (const dot of fronts.flat()) dot.onFront = true;
  const hasRange = (dot: Dot) => dot.isBest || dot.onFront || dots.length <= kMostRanges;
  const valuesOf = (key: 'x' | 'y') =>
    dots.flatMap((dot) =>
      hasRange(dot) ? [dot[key].low, dot[key].value, dot[key].high] : [dot[key].value],
    );
  const right = width - kRight;
  const bottom = height - kBottom;
  const across = scaleOf(valuesOf('x'), kLeft, right);
  const up = scaleOf(valuesOf('y'), bottom, kTop);

  let before = -Infinity;
  for (const value of across.marks) {
    const at = across.at(value);
    add('line', { x1: at, x2: at, y1: kTop, y2: bottom, stroke: style.grid });
    if (at - before < widthOf(short(value)) + 8) continue;
    before = at;
    add('text', { x: at, y: bottom + 17, 'text-anchor': 'middle' }, short(value));
  }
  for (const value of up.marks) {
    const at = up.at(value);
    add('line', { x1: kLeft, x2: right, y1: at, y2: at, stroke: style.grid });
    add('text', { x: kLeft - 7, y: at + 4, 'text-anchor': 'end' }, short(value));
  }
  const titled = (measure: Shown) =>
    `${measure.title}, ${measure.unit} (${measure.more ? 'more' : 'less'} is better)`;
  const titleAt = (at: { x: number; y: number; transform?: string }, measure: Shown) =>
    add('text', { ...at, 'text-anchor': 'middle', class: 'axis-title' }, titled(measure));
  const middle = (kTop + bottom) / 2;
  titleAt({ x: (kLeft + right) / 2, y: height - 8 }, x);
  titleAt({ x: 15, y: middle, transform: `rotate(-90 15 ${middle})` }, y);

  const line = (front: Dot[], more: Record<string, string | number>) =>
    add('polyline', {
      points: front
        .map((dot) => `${across.at(dot.x.value).toFixed(1)},${up.at(dot.y.value).toFixed(1)}`)
        .join(' '),
      fill: 'none',
      'stroke-linejoin': 'round',
      'stroke-linecap': 'round',
      ...more,
    });
  if (machines.machines.length > 1)
    line(frontOf(dots, x, y), {
      class: 'front-of-all',
      stroke: style.ink,
      'stroke-width': 8,
      'stroke-opacity': 0.13,
    });
  fronts.forEach((front, machine) =>
    line(front, { class: 'front', stroke: inkOf(machine), 'stroke-width': 1.5 }),
  );

  // The bests last, over the others.
  const ordered = [...dots].sort((a, b) => Number(a.isBest) - Number(b.isBest) || b.point - a.point);
  for (const dot of ordered) {
    const at = { x: across.at(dot.x.value), y: up.at(dot.y.value) };
    const text =
      `${machines.machines[dot.machine].name}, ${points.name[dot.point]}: ` +
      [x, y]
        .map((measure, i) => {
          const number = i === 0 ? dot.x : dot.y;
          const between =
            short(number.low) === short(number.high)
              ? ''
              : ` (${range(number)})`;
          return `${measure.title} ${short(number.value)}${between} ${measure.unit}`;
        })
        .join(', ');
    const group = s('g', { class: dot.isBest ? 'dot best' : 'dot' }, s('title', {}, text));
    if (style.point) {
      group.addEventListener('pointerenter', () => style.point!(text));
      group.addEventListener('pointerleave', () => style.point!(''));
    }
    if (hasRange(dot)) {
      const bar = {
        class: 'range',
        stroke: inkOf(dot.machine),
        'stroke-width': dot.isBest ? 1.6 : 1,
        'stroke-opacity': dot.isBest ? 1 : 0.3,
      };
      if (dot.x.high > dot.x.low)
        group.append(s('line', { ...bar, x1: across.at(dot.x.low), x2: across.at(dot.x.high), y1: at.y, y2: at.y }));
      if (dot.y.high > dot.y.low)
        group.append(s('line', { ...bar, x1: at.x, x2: at.x, y1: up.at(dot.y.low), y2: up.at(dot.y.high) }));
    }
    group.append(
      shapeAt(dot.machine, at.x, at.y, dot.isBest ? 6.5 : 3.6, {
        stroke: style.back,
        'stroke-width': dot.isBest ? 0.22 : 0.15,
        'fill-opacity': dot.isBest || dot.onFront ? 1 : 0.55,
      }),
    );
    picture.append(group);
  }
  const named = dots.filter((dot) => dot.isBest);
  const taken = named.flatMap((dot): [number, number, number, number][] => {
    const [left, top] = [across.at(dot.x.value), up.at(dot.y.value)];
    return [
      [left - 8, top - 8, left + 8, top + 8],
      [across.at(dot.x.low), top - 2, across.at(dot.x.high), top + 2],
      [left - 2, up.at(dot.y.high), left + 2, up.at(dot.y.low)],
    ];
  });
  for (const dot of named) {
    const full = machines.machines[dot.machine].name;
    const text = full.length > 36 ? `${full.slice(0, 35)}\u2026` : full;
    const place = placeLabel(
      { x: across.at(dot.x.value), y: up.at(dot.y.value) },
      widthOf(text),
      taken,
      style,
    );
    add(
      'text',
      {
        ...place,
        class: 'name',
        'font-weight': 'bold',
        stroke: style.back,
        'stroke-width': 3,
        'paint-order': 'stroke',
      },
      text,
    );
  }
  return picture;
}
