// The machine of a lesson while its step is played: GPUs in the colour of what they compute, and on
// each link a line of dots for each transfer, as fast as it moves.
import { loadAt } from './analysis';
import { loadColor } from './canvas';
import type { DrawnLink, Link, Run } from './data';
import { color } from './paint';
import type { State } from './state';
import { h, s, time } from './text';

const kSeconds = 6; // that a step takes to be played
const kWay = 420; // pixels that a transfer passes in this time, alone on its link
const kLeastScale = 0.72; // of the drawing, whose names have 13 pixels
const kMostCables = 4; // of a bundle that are told apart
const kApart = 46;
const kMostFlows = 4; // of a link that are told apart

const leastWidth = (run: Run): number => Math.round(run.cluster!.width * kLeastScale);

interface Cable {
  path: SVGElement;
  link: DrawnLink;
  records: number[];
  aside: number; // of the drawn line
  flows: SVGElement[];
  isReversed: Map<number, boolean>; // by record: against the direction of the path
}

// How long the link would have been full, until `at`, ns.
function carriedUntil(link: Link, at: number): number {
  let sum = 0;
  for (let i = 0; i < link.at.length && link.at[i] < at; ++i)
    sum += (link.share[i] / 1000) * (Math.min(link.at[i + 1] ?? at, at) - link.at[i]);
  return sum;
}

class Machine {
  readonly element: SVGElement;
  private readonly cables: Cable[] = [];
  private readonly devices: { box: SVGElement; name: SVGElement; title: string }[] = [];

  constructor(private readonly run: Run) {
    const cluster = run.cluster!;
    this.element = s('svg', {
      viewBox: `0 0 ${cluster.width} ${cluster.height}`,
      role: 'img',
      'aria-label': `The machine of step ${run.letter || run.title}`,
    });
    // Names stay as large as they can be read; what is wider is moved to.
    this.element.style.minWidth = `${leastWidth(run)}px`;
    for (const [x, y, width, height] of cluster.nodes)
      this.element.append(s('rect', { x, y, width, height, rx: 8, class: 'node' }));
    const boxes = new Map(cluster.boxes.map(([x, y, , , , , title]) => [title, [x, y]]));
    const boxOf = (name: string): number[] | undefined => {
      for (let at = name; ; at = at.slice(0, at.lastIndexOf('/'))) {
        if (boxes.has(at) || !at.includes('/')) return boxes.get(at);
      }
    };
    for (const link of cluster.links) {
      const [, x, y] = /^M\s*(-?[\d.]+)[ ,]+(-?[\d.]+)/.exec(link.path) ?? [];
      const ends = [...link.path.matchAll(/(-?[\d.]+)[ ,]+(-?[\d.]+)/g)].pop();
      const far = (box: number[], px: number, py: number) => (box[0] - px) ** 2 + (box[1] - py) ** 2;
      const isReversed = new Map(
        link.records.map((record) => {
          const from = boxOf(run.links[record].name.split('->')[0]);
          return [
            record,
            !!from && !!ends &&
              far(from, Number(x), Number(y)) > far(from, Number(ends[1]), Number(ends[2])),
          ];
        }),
      );
      // A bundle is drawn cable by cable: of two that do the same only one may be full.
      const ways = new Map<string, number[]>();
      for (const record of link.records) {
        const ends = run.links[record].name.split('->').sort().join(' ');
        ways.set(ends, [...(ways.get(ends) ?? []), record]);
      }
      const used = [...ways.values()];
      // Sprayed over all its cables.
      const isTrunk = used.length === 1 && [...ways.keys()][0].includes('*');
      const count = Math.min(Math.max(link.count, used.length, 1), kMostCables);
      for (let i = 0; i < count; ++i) {
        const records = isTrunk ? used[0] : i + 1 < count ? (used[i] ?? []) : used.slice(i).flat();
        const aside = (i - (count - 1) / 2) * kApart;
        const isUsed = records.length > 0;
        const path = s('path', {
          d: link.path,
          class: isUsed ? 'cable' : 'cable unused',
          'stroke-width': isUsed ? 9 : 3,
          transform: `translate(${aside}, 0)`,
        });
        path.append(s('title', {}, link.title));
        this.element.append(path);
        this.cables.push({ path, link, records, aside, flows: [], isReversed });
      }
    }
    for (const [x, y, width, height, kind, label, title, dots] of cluster.boxes) {
      const box = s('rect', {
        x: x - width / 2, y: y - height / 2, width, height, rx: 6, class: `box ${kind}`,
      });
      const at = dots ? y + height / 2 - 6 : y + 4;
      const name = s('text', { x, y: at, 'text-anchor': 'middle', class: 'box-name' }, label);
      this.element.append(s('g', {}, s('title', {}, `${title} (${kind})`), box, name));
      if (kind === 'device') this.devices.push({ box, name, title });
    }
    // Names last, so that no cable hides them.
    for (const [x, y, , height, label] of cluster.nodes)
      this.element.append(s('text', { x: x + 8, y: y + height - 8, class: 'node-name' }, label));
    for (const [x, y, text] of cluster.captions)
      this.element.append(s('text', { x, y, 'text-anchor': 'middle', class: 'node-name' }, text));
  }

  draw(at: number, end: number): void {
    const { run } = this;
    for (const { box, name, title } of this.devices) {
      const shown = run.shown.find((one) => one.name === title);
      let fill = '';
      for (let i = shown?.first ?? 0; i < (shown?.end ?? 0) && !fill; ++i)
        if (run.begin[i] <= at && at < run.end[i] && !run.communicates(i)) fill = run.classOf(i).fill;
      box.style.fill = fill || color('--band');
      box.style.stroke = color('--faint');
      name.style.fill = fill ? '#ffffff' : color('--ink');
    }
    for (const cable of this.cables) {
      const { link, records } = cable;
      if (records.length === 0) continue;
      const most = Math.max(...records.map((one) => loadAt(run.links[one], at)));
      cable.path.style.stroke = most > 0.001 ? loadColor(most) : color('--idle');
      for (const old of cable.flows) old.remove();
      cable.flows = [];
      const flows = records.flatMap((record) => this.flowsOf(record, at));
      flows.slice(0, kMostFlows).forEach(({ record, count, hue }, i, all) => {
        const way = (carriedUntil(run.links[record], at) / end) * (kWay / count);
        const aside = cable.aside + (i - (all.length - 1) / 2) * 8;
        const dots = s('path', {
          d: link.path,
          class: 'flow',
          transform: `translate(${aside}, ${(aside - cable.aside) / 3})`,
          'stroke-dasharray': '0.1 17.9',
          'stroke-dashoffset': cable.isReversed.get(record) ? way : -way,
        });
        dots.style.stroke = hue;
        cable.path.after(dots);
        cable.flows.push(dots);
      });
    }
  }

  // The transfers that share this direction of a link at this moment.
  private flowsOf(record: number, at: number): { record: number; count: number; hue: string }[] {
    const { run } = this;
    const link = run.links[record];
    if (loadAt(link, at) < 0.001) return [];
    const hues = [...link.spans]
      .filter((span) => run.begin[span] <= at && at < run.end[span])
      .map((span) => `hsl(${(210 + run.shownOf(span).rank * 97) % 360} 70% 42%)`);
    return (hues.length > 0 ? hues : ['#16202b']).map((hue, _, all) => ({
      record, count: all.length, hue,
    }));
  }
}

export class MachinePicture {
  readonly element = h('figure', { class: 'machine' });
  private state: State | null = null;
  private machines: Machine[] = [];
  private frame = 0;
  private readonly told = h('output', { class: 'note' });
  private readonly button = h(
    'button',
    { class: 'main play', title: 'Play the step', click: () => (this.frame ? this.stop() : this.play()) },
    'Play',
  );

  // `watch` opens a film of it, where there is one.
  attach(state: State, watch: (() => void) | null = null): void {
    this.stop();
    this.state = state;
    const runs = state.page.runs.filter((run) => run.cluster);
    this.machines = runs.map((run) => new Machine(run));
    this.element.replaceChildren(
      h(
        'div',
        { class: 'machines-row' },
        ...this.machines.map((machine, i) =>
          h(
            'div',
            { class: 'picture', style: `flex-basis: ${leastWidth(runs[i])}px` },
            runs.length > 1 && h('b', {}, `${runs[i].letter}  ${i === 0 ? 'as it was' : 'changed'}`),
            machine.element,
          ),
        ),
      ),
      h(
        'figcaption',
        { class: 'legend' },
        this.button,
        watch &&
          h(
            'button',
            { id: 'watch', title: 'Its first collective, block by block', click: watch },
            'Step by step',
          ),
        this.told,
        h('span', {}, 'GPUs: in the colour of what they compute.'),
        h('span', {}, 'Links: a line of dots for each transfer.'),
        h(
          'span',
          { class: 'scale' },
          'empty ',
          ...[0, 0.25, 0.5, 0.75, 1].map((share) =>
            h('i', { class: 'swatch', style: `background:${loadColor(share)}` }),
          ),
          ' full',
        ),
      ),
    );
    state.on('cursor', () => this.draw());
    this.draw();
  }

  draw(): void {
    const { state } = this;
    if (!state) return;
    const end = Math.max(...state.page.runs.map((run) => run.step));
    for (const machine of this.machines) machine.draw(state.cursor, end);
    this.told.textContent = `${time(Math.min(state.cursor, end))} of ${time(end)}`;
  }

  // From the beginning on; what the timeline has of the changed step appears as it is played.
  play(): void {
    const { state } = this;
    if (!state) return;
    const end = Math.max(...state.page.runs.map((run) => run.step));
    const hides = state.page.runs.length > 1;
    const begin = performance.now();
    this.button.textContent = 'Pause';
    const tick = (now: number) => {
      const at = Math.min(((now - begin) / 1000 / kSeconds) * end, end);
      state.playedTo = hides && at < end ? Math.max(at, 0) : null;
      state.moveCursor(Math.max(at, 0));
      if (at < end) this.frame = requestAnimationFrame(tick);
      else {
        this.stop();
        state.moveCursor(end * 0.4);
      }
    };
    this.frame = requestAnimationFrame(tick);
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.button.textContent = 'Play';
    if (this.state && this.state.playedTo !== null) {
      this.state.playedTo = null;
      this.state.moveCursor(this.state.cursor);
    }
  }
}
