// What a search found, machine by machine: the first screen of its page. A sentence, a table with a
// row for each machine, all configurations as dots, and below it the timelines of the bests.
import type { Machines, Measure } from './data';
import { machinesPicture } from './machines_picture';
import { mark } from './marks';
import { color, forgetColors } from './paint';
import { scatter } from './scatter';
import type { Timeline } from './timeline';
import { h, whole } from './text';

export interface Ranged {
  value: number;
  low: number;
  high: number;
}

// A measure in the unit in which its numbers are neither tiny nor huge.
export interface Shown extends Measure {
  times: number;
}

export function shownMeasures(machines: Machines): Shown[] {
  return machines.measures.map((measure) => {
    const bests = machines.machines.flatMap((one) =>
      one.point === undefined ? [] : [machines.points.values[measure.key][one.point] ?? 0],
    );
    const isSmall = Math.max(...bests) < 1;
    if (isSmall && measure.key === 'step') return { ...measure, unit: 'ms', times: 1e3 };
    return { ...measure, times: 1 };
  });
}

export function rangedOf(machines: Machines, measure: Shown, point: number): Ranged | null {
  const value = machines.points.values[measure.key][point];
  if (value === null || value === undefined) return null;
  const shown = value * measure.times;
  const { points } = machines;
  const { follows } = measure;
  const low = (follows === 'run' ? points.run_low : points.low)?.[point] ?? 1;
  const high = (follows === 'run' ? points.run_high : points.high)?.[point] ?? 1;
  if (follows === 'step' || follows === 'run')
    return { value: shown, low: shown * low, high: shown * high };
  if (follows === 'reciprocal') return { value: shown, low: shown / high, high: shown / low };
  return { value: shown, low: shown, high: shown };
}

// As if the errors of two machines had nothing in common.
export const over = (a: Ranged, b: Ranged): Ranged => ({
  value: a.value / b.value,
  low: a.low / b.high,
  high: a.high / b.low,
});

export const short = (value: number): string =>
  value >= 1000 ? whole(Number(value.toPrecision(3))) : String(Number(value.toPrecision(3)));

// Never broken into two lines.
export const range = (number: Ranged): string =>
  `${short(number.low)}\u2060\u2013\u2060${short(number.high)}`;

export interface Cell {
  value: string;
  small: string[]; // its range, and the ratio to the first machine
}
export interface Line {
  machine: number;
  name: string;
  under: string; // how many GPUs
  cells: Cell[];
  binds: string;
  detail: string;
}

const kPercents = ['exposed', 'mfu'];

// What the table says, for the page and for the picture.
export function linesOf(machines: Machines, measures: Shown[]): Line[] {
  const first = machines.machines.find((one) => one.point !== undefined);
  return machines.machines.map((machine, i) => {
    const cells = measures.map((measure): Cell => {
      const number = machine.point === undefined ? null : rangedOf(machines, measure, machine.point);
      if (!number) return { value: '\u2013', small: [] };
      const small: string[] = [];
      if (short(number.low) !== short(number.high))
        small.push(range(number));
      if (measure.key === 'memory' && machine.capacity)
        small.push(
          `of ${short(machine.capacity)}, ${Math.round((100 * number.value) / machine.capacity)} %`,
        );
      const base = first?.point === undefined ? null : rangedOf(machines, measure, first.point);
      if (base && base.value > 0 && machine !== first && !kPercents.includes(measure.key)) {
        const ratio = over(number, base);
        small.push(
          `\u00d7${short(ratio.value)}` + (measure.follows === 'not' ? '' : ` (${range(ratio)})`),
        );
      }
      return { value: short(number.value), small };
    });
    const detail = [machine.configuration, machine.trust, machine.why_none]
      .filter((text) => text)
      .join('; ');
    return {
      machine: i,
      name: machine.name,
      under: machine.devices ? `${whole(machine.devices)} GPU${machine.devices > 1 ? 's' : ''}` : '',
      cells,
      binds: machine.binds ?? '',
      detail: machine.configuration && machine.point === undefined ? `${detail}; not simulated` : detail,
    };
  });
}

function tableOf(machines: Machines, measures: Shown[]): HTMLElement {
  const head = h(
    'tr',
    {},
    h('th', { scope: 'col' }, 'best of each'),
    ...measures.map((measure) =>
      h('th', { scope: 'col', class: 'number' }, measure.title, h('small', {}, measure.unit)),
    ),
    h('th', { scope: 'col', class: 'binds' }, 'most of the step'),
  );
  const bodies = linesOf(machines, measures).map((line) =>
    h(
      'tbody',
      {},
      h(
        'tr',
        {},
        h(
          'th',
          { scope: 'row' },
          mark(line.machine, 12),
          line.name,
          h('small', {}, line.under),
        ),
        ...line.cells.map((cell) =>
          h('td', { class: 'number' }, cell.value, ...cell.small.map((text) => h('small', {}, text))),
        ),
        h('td', { class: 'binds' }, line.binds),
      ),
      h('tr', { class: 'detail' }, h(
          'td',
          { colspan: measures.length + 2 },
          h('span', { class: 'narrow' }, line.binds ? `${line.binds}; ` : ''),
          line.detail,
        )),
    ),
  );
  return h('table', { class: 'best', 'aria-label': 'The best of each' }, h('thead', {}, head), ...bodies);
}

// What has one objective only is drawn beside what it costs.
function firstAxes(machines: Machines, measures: Shown[]): [Shown, Shown] {
  const of: Record<string, string> = { time: 'step' }; // the others have the same name
  const find = (key: string | undefined) => measures.find((one) => one.key === key);
  const [one, other] = machines.objectives.map((name) => find(of[name] ?? name));
  const up = one ?? find('step')!;
  const across =
    other ?? ['money', 'memory', 'energy', 'step'].map(find).find((one) => one && one !== up)!;
  return [across, up];
}

// A picture is on white, whatever the page is on.
async function inLight<Made>(make: () => Promise<Made>): Promise<Made> {
  const root = document.documentElement;
  const before = root.dataset['theme'];
  root.dataset['theme'] = 'light';
  forgetColors();
  try {
    return await make();
  } finally {
    if (before) root.dataset['theme'] = before;
    else delete root.dataset['theme'];
    forgetColors();
  }
}

// As high as the first screen has room for.
function heightOf(plot: HTMLElement): number {
  const legend = 60;
  const room = window.innerHeight - plot.getBoundingClientRect().top - window.scrollY - legend;
  return Math.round(Math.max(250, Math.min(room, plot.clientWidth * 0.5, 460)));
}

export interface MachinesView {
  element: HTMLElement;
  draw(): void; // once it is in the page, and with other colours
}

export function machinesView(
  machines: Machines,
  timeline: () => Timeline | null,
  buttons: HTMLElement[],
): MachinesView {
  const measures = shownMeasures(machines);
  let [x, y] = firstAxes(machines, measures);
  const plot = h('div', { class: 'scatter' });
  const kAsk = 'Point at a dot to read it.';
  const what = h('p', { class: 'note what', role: 'status' }, kAsk);
  const draw = () => {
    if (!plot.clientWidth) return;
    plot.replaceChildren(
      scatter(machines, x, y, {
        width: plot.clientWidth,
        height: heightOf(plot),
        ink: color('--ink'),
        faint: color('--faint'),
        grid: color('--grid'),
        back: color('--back'),
        point: (text) => {
          what.textContent = text || kAsk;
        },
      }),
    );
  };
  const pick = (label: string, now: Shown, changed: (measure: Shown) => void) => {
    const select = h(
      'select',
      {
        change: () => {
          changed(measures[select.selectedIndex]);
          draw();
        },
      },
      ...measures.map((one) => h('option', { selected: one === now }, one.title)),
    );
    return h('label', {}, label, select);
  };
  const save = h(
    'button',
    {
      title: 'Save this screen and the timelines as a picture',
      click: () => void savePicture(),
    },
    'Save as PNG',
  );
  const savePicture = async () => {
    const url = await inLight(() => machinesPicture(machines, measures, x, y, timeline()));
    timeline()?.restyle();
    const link = h('a', {
      href: url,
      download: `${machines.title.replace(/[^A-Za-z0-9._-]+/g, '-').slice(0, 60) || 'search'}.png`,
    });
    link.click();
  };
  new ResizeObserver(draw).observe(plot);
  const element = h(
    'section',
    { class: 'machines', 'aria-label': 'Machines side by side' },
    h(
      'div',
      { class: 'top' },
      h('h1', {}, machines.title),
      h('span', { class: 'grow' }),
      h(
        'span',
        { class: 'controls' },
        save,
        h('button', { title: 'Print', click: () => print() }, 'Print'),
        ...buttons,
      ),
    ),
    h('p', { class: 'facts' }, machines.facts.join(', ')),
    h('p', { class: 'sentence' }, machines.sentence),
    tableOf(machines, measures),
    h(
      'div',
      { class: 'controls' },
      pick('Across ', x, (measure) => {
        x = measure;
      }),
      pick('Up ', y, (measure) => {
        y = measure;
      }),
      what,
    ),
    h(
      'figure',
      {},
      plot,
      h(
        'figcaption',
        {},
        ...machines.machines.map((machine, i) =>
          h('span', {}, mark(i, 12), machine.name),
        ),
        h('p', { class: 'note' }, kExplained),
      ),
    ),
  );
  return { element, draw };
}

export const kExplained =
  'A dot is a simulated configuration, a large one the best of its machine. Lines join what no other ' +
  'is better than in both, for each machine; the wide grey one, for all of them. Ranges: how far equal ' +
  'GPUs differ (10 % to 90 % of clusters), and the mean error for published steps most like it (of a ' +
  'GPU without any, the worst).';
