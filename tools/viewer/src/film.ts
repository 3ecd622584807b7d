// `rehearse collective --watch`: blocks of data move along the links that the simulation used, at its
// times, and are added and overwritten.
import { loadColor, Sheet } from './canvas';
import { type Film, FilmState, keyOf, countOf, type Move } from './film_state';
import { color, forgetColors } from './paint';
import { bytes, h, rate, s, time, whole } from './text';

interface Segment {
  path: SVGPathElement;
  length: number;
  reversed: boolean;
}

const kLeastScale = 0.85; // of the drawing, whose names have 11 pixels
const kSeconds = 10; // that the whole takes at speed 1

export function hueOf(hue: number, hues: number): string {
  if (hue < 0) return 'transparent';
  return `hsl(${Math.round((hue * 360) / hues + 210) % 360} 62% ${hue % 2 ? 42 : 52}%)`;
}

// The machine, and on it what is under way.
class Machine {
  readonly element: SVGElement;
  private readonly packets = s('g', { class: 'packets' });
  private readonly cables: SVGPathElement[];
  private readonly drawnOfWay = new Map<number, number>();
  private readonly routes = new Map<string, Segment[]>();
  private readonly boxes = new Map<string, [number, number]>();

  constructor(
    private readonly film: Film,
    private readonly hues: number,
  ) {
    const { cluster } = film;
    this.element = s('svg', {
      viewBox: `0 0 ${cluster.width} ${cluster.height}`,
      role: 'img',
      'aria-label': `Cluster ${cluster.name}`,
    });
    // Names stay as large as they can be read; what is wider is moved to.
    this.element.style.minWidth = `${Math.round(cluster.width * kLeastScale)}px`;
    for (const [x, y, width, height, label] of cluster.nodes) {
      this.element.append(s('rect', { x, y, width, height, rx: 8, class: 'node' }));
      this.element.append(s('text', { x: x + 8, y: y + height - 8, class: 'node-name' }, label));
    }
    this.cables = cluster.links.map((link, i) => {
      for (const way of link.records) if (!this.drawnOfWay.has(way)) this.drawnOfWay.set(way, i);
      const path = s('path', {
        d: link.path,
        class: link.records.length ? 'cable' : 'cable unused',
        'stroke-width': link.records.length ? 5 : 1.5,
      });
      path.append(s('title', {}, link.title));
      this.element.append(path);
      return path as SVGPathElement;
    });
    for (const [x, y, width, height, kind, label, title] of cluster.boxes) {
      this.boxes.set(title, [x, y]);
      this.element.append(
        s(
          'g',
          {},
          s('title', {}, `${title} (${kind})`),
          s('rect', {
            x: x - width / 2,
            y: y - height / 2,
            width,
            height,
            rx: 6,
            class: `box ${kind}`,
          }),
          s('text', { x, y: y + 4, 'text-anchor': 'middle', class: 'box-name' }, label),
        ),
      );
    }
    for (const [x, y, text] of cluster.captions)
      this.element.append(s('text', { x, y, 'text-anchor': 'middle', class: 'node-name' }, text));
    this.element.append(this.packets);
  }

  private boxOf(name: string): [number, number] | undefined {
    for (let at = name; ; at = at.slice(0, at.lastIndexOf('/'))) {
      const box = this.boxes.get(at);
      if (box || !at.includes('/')) return box;
    }
  }

  private routeOf(move: Move): Segment[] {
    const key = move.ways.join(' ');
    let route = this.routes.get(key);
    if (route) return route;
    route = [];
    for (const way of move.ways) {
      const drawn = this.drawnOfWay.get(way);
      if (drawn === undefined) continue;
      const path = this.cables[drawn];
      const length = path.getTotalLength();
      const begin = path.getPointAtLength(0);
      const end = path.getPointAtLength(length);
      const from = this.boxOf(this.film.ways[way][0]) ?? [begin.x, begin.y];
      const far = (x: number, y: number) => (x - from[0]) ** 2 + (y - from[1]) ** 2;
      route.push({ path, length, reversed: far(begin.x, begin.y) > far(end.x, end.y) });
    }
    this.routes.set(key, route);
    return route;
  }

  // Where a message is when this share of its time is over; null if no drawn link carries it.
  placeOf(move: Move, share: number): { x: number; y: number } | null {
    const route = this.routeOf(move);
    let left = route.reduce((sum, one) => sum + one.length, 0) * share;
    for (const [i, { path, length, reversed }] of route.entries()) {
      if (left > length && i + 1 < route.length) {
        left -= length;
        continue;
      }
      const { x, y } = path.getPointAtLength(reversed ? length - left : left);
      return { x, y };
    }
    return null;
  }

  draw(state: FilmState, at: number, isChosen: (part: number) => boolean): void {
    const load = new Map<number, number>(); // by way
    const drawn: SVGElement[] = [];
    for (const number of state.underWay) {
      const move = this.film.moves[number];
      const took = move.end - move.begin;
      for (const way of move.ways)
        load.set(
          way,
          (load.get(way) ?? 0) + ((move.bytes / took) * 1e9) / this.film.ways[way][2],
        );
      if (!isChosen(move.part)) continue;
      const place = this.placeOf(move, took > 0 ? (at - move.begin) / took : 1);
      if (!place) continue;
      const carried = state.carriedBy(number);
      // Those of several groups lie side by side, where they share a link.
      const kSize = 15;
      const size = this.film.groups > 2 ? 11 : kSize;
      const group = Math.floor(move.part / (this.film.parts.length / this.film.groups));
      place.x += (group - (this.film.groups - 1) / 2) * (size + 3);
      carried.slice(0, 3).forEach(({ hue, parts }, i) => {
        const high = (countOf(parts) / this.film.full) * size;
        const x = place.x - size / 2 + i * 3;
        const y = place.y - size / 2 - i * 3;
        drawn.push(
          s('rect', { x, y, width: size, height: size, rx: 3, class: 'packet' }),
          s('rect', {
            x,
            y: y + size - high,
            width: size,
            height: high,
            rx: 2,
            fill: hueOf(hue, this.hues),
          }),
        );
      });
    }
    this.packets.replaceChildren(...drawn);
    this.film.cluster.links.forEach((link, i) => {
      if (link.records.length === 0) return;
      const most = Math.max(...link.records.map((way) => load.get(way) ?? 0));
      this.cables[i].style.stroke = most > 0.001 ? loadColor(most) : color('--idle');
    });
  }
}

// In a page of its own, or in an element that `close` removes.
export function showFilm(
  film: Film,
  expose: (parts: Record<string, unknown>) => void,
  host: HTMLElement = document.body,
  close: (() => void) | null = null,
): void {
  const hues = Math.max(...film.holds.map(([, , , hue]) => hue), 0) + 1;
  const state = new FilmState(film);
  const machine = new Machine(film, hues);
  const partsOfGroup = film.parts.length / film.groups;
  const cells = film.parts.reduce((sum, one) => sum + one.chunks, 0) / film.groups;
  const kMostCells = 64;
  let part = partsOfGroup > 1 && cells > kMostCells ? 0 : -1; // of each group; -1: all
  let at = 0;
  let playing = false;
  let speed = 1;
  let last = 0;

  const messages = film.moves.filter((move) => move.end > move.begin);
  const ends = [...new Set(messages.map((move) => move.end))].sort((a, b) => a - b);
  // Steps that end within a thousandth of the whole are one.
  const steps = ends.filter((end, i) => i + 1 === ends.length || ends[i + 1] - end > film.end / 1e3);

  const chosenParts = (group: number): number[] =>
    Array.from({ length: partsOfGroup }, (_, i) => group * partsOfGroup + i).filter(
      (_, i) => part < 0 || i === part,
    );
  const wanted = new Set(film.wants.map(([place, one, chunk]) => keyOf(place, one, chunk)));
  const sheet = new Sheet('What each GPU holds', (context, width) => {
    const begin = 150;
    const row = rowHeight();
    const busy = new Set<number>();
    for (const number of state.underWay) {
      const move = film.moves[number];
      for (const [, written] of move.chunks) busy.add(keyOf(move.to, move.part, written));
    }
    context.textBaseline = 'middle';
    film.ranks.forEach(([rank, name, group], place) => {
      const y = place * row + 4;
      context.fillStyle = color('--ink');
      context.font = '12px system-ui, sans-serif';
      context.fillText(`rank ${rank}  ${name}`.slice(0, 24), 4, y + row / 2 - 2);
      const parts = chosenParts(group);
      const count = parts.reduce((sum, one) => sum + film.parts[one].chunks, 0);
      const gaps = 6 * (parts.length - 1);
      const wide = Math.min((width - begin - 8 - gaps) / count, 96);
      let x = begin;
      for (const one of parts) {
        for (let chunk = 0; chunk < film.parts[one].chunks; ++chunk, x += wide) {
          const key = keyOf(place, one, chunk);
          const block = state.blocks.get(key);
          const tall = row - 6;
          const gap = wide > 5 ? 1.5 : 0;
          context.fillStyle = color('--track');
          // Of narrow ones every pixel is painted, so that colours are as bright.
          const left = gap > 0 ? x : Math.floor(x);
          const across = gap > 0 ? wide - gap : Math.ceil(x + wide) - left;
          context.fillRect(left, y, across, tall);
          if (block && block.parts > 0n) {
            const high = (countOf(block.parts) / film.full) * tall;
            context.fillStyle = hueOf(block.hue, hues);
            context.fillRect(left, y + tall - high, across, high);
          }
          context.lineWidth = busy.has(key) ? 2 : wanted.has(key) ? 1 : 0.5;
          context.strokeStyle = color(busy.has(key) ? '--cursor' : wanted.has(key) ? '--faint' : '--line');
          if (wide > 4) context.strokeRect(x + 0.5, y + 0.5, wide - gap - 1, tall - 1);
        }
        x += 6;
      }
    });
  });
  const rowHeight = () => (film.ranks.length > 40 ? 14 : film.ranks.length > 16 ? 20 : film.ranks.length > 8 ? 30 : 44);
  sheet.element.classList.add('holds');
  sheet.element.style.height = `${film.ranks.length * rowHeight() + 10}px`;

  const told = h('output', { class: 'note', role: 'status' });
  const scrub = h('input', {
    type: 'range',
    min: 0,
    max: 10000,
    step: 1,
    value: 0,
    'aria-label': 'Time',
    input: () => show((Number(scrub.value) / 10000) * film.end),
  });
  const show = (to: number) => {
    at = Math.max(0, Math.min(to, film.end));
    state.moveTo(at);
    machine.draw(state, at, (one) => part < 0 || one % partsOfGroup === part);
    sheet.draw();
    scrub.value = String(Math.round((at / film.end) * 10000));
    const step = steps.filter((end) => end <= at).length;
    told.textContent =
      `${time(at)} of ${time(film.end)}, step ${Math.min(step + 1, steps.length)} of ` +
      `${steps.length}, ${whole(state.done)} of ${whole(messages.length)} messages have arrived`;
    expose({ film: { at, done: state.done, state, machine, data: film, show, steps } });
  };
  const play = h('button', { class: 'main', click: () => setPlaying(!playing) }, 'Play');
  const setPlaying = (on: boolean) => {
    if (on && at >= film.end) show(0);
    playing = on;
    play.textContent = on ? 'Pause' : 'Play';
    last = performance.now();
    if (on) requestAnimationFrame(tick);
  };
  const tick = (now: number) => {
    if (!playing) return;
    show(at + ((now - last) / 1000 / kSeconds) * film.end * speed);
    last = now;
    if (at >= film.end) setPlaying(false);
    else requestAnimationFrame(tick);
  };
  const step = (by: number) => {
    setPlaying(false);
    const tiny = film.end / 1e6;
    show(
      by > 0
        ? (steps.find((end) => end > at + tiny) ?? film.end)
        : (steps.filter((end) => end < at - tiny).pop() ?? 0),
    );
  };
  const speeds = h(
    'select',
    { 'aria-label': 'Speed', change: () => (speed = Number(speeds.value)) },
    ...[0.25, 0.5, 1, 2, 4].map((one) =>
      h('option', { value: one, selected: one === 1 }, `speed ${one}`),
    ),
  );
  const parts =
    partsOfGroup > 1
      ? h(
          'select',
          {
            'aria-label': 'Part',
            change: () => {
              part = Number(parts!.value);
              show(at);
            },
          },
          h('option', { value: -1, selected: part < 0 }, `all ${partsOfGroup} channels or trees`),
          ...Array.from({ length: partsOfGroup }, (_, i) =>
            h('option', { value: i, selected: part === i }, `channel or tree ${i + 1}`),
          ),
        )
      : null;
  const theme = h(
    'button',
    {
      title: 'Light or dark (T)',
      click: () => {
        const root = document.documentElement;
        const dark =
          root.dataset['theme'] === 'dark' ||
          (!root.dataset['theme'] && matchMedia('(prefers-color-scheme: dark)').matches);
        root.dataset['theme'] = dark ? 'light' : 'dark';
        forgetColors();
        show(at);
      },
    },
    'Light / dark',
  );
  const listening = new AbortController();
  const leave = () => {
    setPlaying(false);
    listening.abort();
    close?.();
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.target instanceof HTMLSelectElement || event.ctrlKey || event.metaKey) return;
    const acts: Record<string, () => void> = {
      ' ': () => setPlaying(!playing),
      arrowright: () => step(1),
      arrowleft: () => step(-1),
      home: () => show(0),
      end: () => show(film.end),
      t: () => theme.click(),
      ...(close && { escape: leave }),
    };
    const act = acts[event.key.toLowerCase()];
    if (!act) return;
    act();
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  document.addEventListener('keydown', onKey, { capture: true, signal: listening.signal });
  host.classList.add('film');
  host.replaceChildren(
    h(
      'header',
      {},
      h('h1', {}, film.title),
      h(
        'p',
        { class: 'facts' },
        `${bytes(film.bytes)} by ${film.algorithm}` +
          (film.protocol === 'none' ? '' : `, protocol ${film.protocol}`) +
          `, ${film.groups > 1 ? `${film.groups} groups of ` : ''}` +
          `${film.ranks.length / film.groups} ranks, ${time(film.end)}, ` +
          `${rate((film.bytes / film.end) * 1e9)} algbw`,
      ),
    ),
    h(
      'div',
      { class: 'toolbar', role: 'toolbar' },
      play,
      h('button', { title: 'One step back (\u2190)', click: () => step(-1) }, '\u25c0 step'),
      h('button', { title: 'One step on (\u2192)', click: () => step(1) }, 'step \u25b6'),
      scrub,
      speeds,
      parts,
      theme,
      close && h('button', { id: 'close-film', title: 'Back to the lesson (Esc)', click: leave }, 'Close'),
      told,
    ),
    h(
      'p',
      { class: 'legend' },
      h('span', {}, film.full > 1
        ? 'A block is as full as ranks have added to it; its colour says which part of the data it is.'
        : 'Colours say whose data a block is.'),
      h('span', {}, 'Outlined: what is arriving.'),
      h(
        'span',
        { class: 'scale' },
        'links: empty ',
        ...[0, 0.2, 0.4, 0.6, 0.8, 1].map((share) =>
          h('i', { class: 'swatch', style: `background:${loadColor(share)}` }),
        ),
        ' full',
      ),
    ),
    h(
      'main',
      { class: `stage${film.cluster.width > 1.5 * film.cluster.height ? ' wide' : ''}` },
      h('div', { class: 'picture' }, machine.element),
      h('div', { class: 'held' }, sheet.element),
    ),
    h('footer', {}, `${film.madeBy}. Space plays, \u2190/\u2192 one step, T light or dark.`),
  );
  show(0);
}
