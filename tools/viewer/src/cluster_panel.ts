// The cluster and the load of its links.
import { loadAt, upper } from './analysis';
import { loadColor, Sheet } from './canvas';
import type { DrawnLink, Link } from './data';
import { color, fitted } from './paint';
import { drawCursor, followCursor, isVisible, opLabel, type Panel, runPicker } from './panel';
import type { State } from './state';
import { bytes, h, percent, rate, s, table, time, whole } from './text';
import type { Timeline } from './timeline';

const kLeastScale = 0.85; // of the drawing, whose names have 11 pixels

// Of a box without a name, as much of its full name as there is room for.
function shortName(title: string, width: number): string {
  const name = title.slice(title.lastIndexOf('/') + 1);
  const kLetter = 6.2;
  return name.length * kLetter <= width - 4 ? name : '';
}

const lastOf = (title: string): string => title.slice(title.lastIndexOf('/') + 1);

// A dot for each device of a box that stands for a whole node, above its name.
function dotsOf(x: number, y: number, width: number, height: number, dots: number): [number, number][] {
  if (dots === 0) return [];
  const room = height - 22; // the name is below
  const across = Math.ceil(dots / Math.max(1, Math.min(4, Math.floor(room / 9))));
  const rows = Math.ceil(dots / across);
  const pitch = Math.min(14, (width - 12) / across);
  return Array.from({ length: dots }, (_, i) => [
    x + ((i % across) - (across - 1) / 2) * pitch,
    y - height / 2 + 5 + (Math.floor(i / across) + 0.5) * (room / rows),
  ]);
}

// The more cables, the wider; those that carry nothing are thin.
const cableWidth = (link: DrawnLink): number =>
  link.records.length ? 4.5 + 0.7 * Math.log2(link.count) : 1.5;

export function clusterPanel(state: State, timeline: Timeline): Panel | null {
  const runs = state.page.runs.filter((run) => run.cluster || run.links.length);
  if (runs.length === 0) return null;
  let run = runs[0];
  const picture = h('div', { class: 'picture' });
  const users = h('div', { class: 'users' });
  const three = h('div', { class: 'three' });
  const note = h('p', { class: 'legend' });
  let drawn: { element: SVGElement; records: number[] }[] = [];
  let dotted: typeof drawn = [];

  const build = () => {
    picture.replaceChildren();
    drawn = [];
    dotted = [];
    const cluster = run.cluster;
    if (!cluster) {
      picture.append(h('p', { class: 'note' }, 'the cluster is not known'));
      return;
    }
    const svg = s('svg', {
      viewBox: `0 0 ${cluster.width} ${cluster.height}`,
      role: 'img',
      'aria-label': `Cluster ${cluster.name}`,
    });
    // Names stay as large as they can be read; what is wider is moved to.
    svg.style.minWidth = `${Math.round(cluster.width * kLeastScale)}px`;
    svg.style.minHeight = `${Math.round(cluster.height * kLeastScale)}px`;
    three.classList.toggle('wide', cluster.width > 1.8 * cluster.height);
    for (const [x, y, width, height, label] of cluster.nodes) {
      svg.append(s('rect', { x, y, width, height, rx: 8, class: 'node' }));
      svg.append(s('text', { x: x + 8, y: y + height - 8, class: 'node-name' }, label));
    }
    for (const link of cluster.links) {
      const path = s('path', {
        d: link.path,
        class: link.records.length ? 'cable' : 'cable unused',
        'stroke-width': cableWidth(link) * (cluster.links.length > 200 ? 0.4 : 1),
      });
      path.append(
        s(
          'title',
          {},
          link.title +
            (link.count > 1 ? `, together ${link.together}` : '') +
            (link.records.length ? '' : ' (carries nothing)'),
        ),
      );
      if (link.records.length) {
        path.setAttribute('tabindex', '0');
        path.addEventListener('click', () => chooseLink(fullest(link.records)));
        drawn.push({ element: path, records: link.records });
      }
      svg.append(path);
    }
    const bundles = cluster.links.filter((link) => link.count > 1);
    if (bundles.length <= 60) {
      for (const {
        count,
        count_at: [x, y],
      } of bundles)
        svg.append(
          s('text', { x, y: y + 4, 'text-anchor': 'middle', class: 'count' }, `\u00d7${count}`),
        );
    }
    // Names that several boxes have: rail0/leaf0 and rail1/leaf0 are told apart by their first part.
    const lasts = cluster.boxes.filter((box) => !box[5]).map((box) => lastOf(box[6]));
    let alike: number[] = [];
    const repeated = new Set(
      cluster.nodes.length > 0 ? [] : lasts.filter((name, i) => lasts.indexOf(name) !== i),
    );
    for (const [x, y, width, height, kind, label, title, dots] of cluster.boxes) {
      const box = s(
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
        s(
          'text',
          { x, y: dots ? y + height / 2 - 6 : y + 4, 'text-anchor': 'middle', class: 'box-name' },
          label || shortName(repeated.has(lastOf(title)) ? title.split('/')[0] : title, width),
        ),
      );
      // What is within such a box is as full as its fullest link.
      let within = run.links.flatMap((link, i) => (link.name.startsWith(`${title}/`) ? [i] : []));
      // Boxes that do the same have the links of the first one.
      if (dots > 0 && within.length === 0) within = alike;
      if (dots > 0 && within.every((one) => run.links[one].count > 1)) alike = within;
      for (const [cx, cy] of dotsOf(x, y, width, height, dots)) {
        const dot = s('circle', { cx, cy, r: 2.6, class: 'dot' });
        box.append(dot);
        if (within.length > 0) dotted.push({ element: dot, records: within });
      }
      svg.append(box);
    }
    for (const [x, y, text] of cluster.captions)
      svg.append(s('text', { x, y, 'text-anchor': 'middle', class: 'node-name' }, text));
    picture.append(svg);
  };
  const fullest = (records: number[]) =>
    records.reduce(
      (best, one) =>
        loadAt(run.links[one], state.cursor) > loadAt(run.links[best], state.cursor) ? one : best,
      records[0],
    );

  const chooseLink = (link: number) => {
    state.link = { run, link };
    state.tell('link');
  };
  const row = 15;
  const left = 230;
  const sheet = new Sheet('Load of links over time', (context, width, height) => {
    const { from, to } = state;
    const wide = Math.max(1, Math.floor(width - left - 6));
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    run.links.slice(0, Math.floor(height / row)).forEach((link, i) => {
      const y = i * row;
      const isChosen = state.link?.run === run && state.link.link === i;
      context.fillStyle = color(isChosen ? '--ink' : '--faint');
      context.font = `${isChosen ? '600 ' : ''}11px system-ui, sans-serif`;
      context.textAlign = 'right';
      context.fillText(
        fitted(context, `${link.count > 1 ? `${link.count} \u00d7 ` : ''}${link.name}`, left - 10),
        left - 6,
        y + row / 2,
      );
      context.textAlign = 'left';
      drawLoads(context, link, left, y, wide, row - 2, from, to);
    });
    drawCursor(context, left + ((state.cursor - from) / (to - from)) * wide, left, width, height);
  });
  const heat = h('div', { class: 'heat' }, sheet.element);
  sheet.canvas.addEventListener('pointermove', (event) =>
    followCursor(state, event, sheet, left, 6),
  );
  sheet.canvas.addEventListener('click', (event) => {
    const i = Math.floor((event.clientY - sheet.canvas.getBoundingClientRect().top) / row);
    if (i >= 0 && i < run.links.length) chooseLink(i);
  });

  const drawUsers = () => {
    if (!isVisible(element)) return;
    if (!state.link || state.link.run !== run) {
      users.replaceChildren(h('p', { class: 'note' }, 'Click a link to see who shares it.'));
      return;
    }
    const link = run.links[state.link.link];
    const now: number[] = [];
    const sums = new Map<string, { span: number; spans: number; bytes: number; took: number }>();
    for (const span of link.spans) {
      if (run.begin[span] <= state.cursor && run.end[span] >= state.cursor) now.push(span);
      const name = `${run.nameOf(span)} ${run.classOf(span).name}`;
      const sum = sums.get(name) ?? { span, spans: 0, bytes: 0, took: 0 };
      ++sum.spans;
      sum.bytes += run.bytesOf(span);
      sum.took += run.end[span] - run.begin[span];
      sums.set(name, sum);
    }
    const zoom = (span: number) => {
      timeline.reveal(run, span);
      state.choose({ run, span }, true);
    };
    users.replaceChildren(
      h('h3', {}, link.name),
      h(
        'p',
        {},
        `${link.kind}, ` +
        rate(link.capacity) +
          (link.count > 1 ? `, ${whole(link.count)} that do the same` : '') +
          '; ' +
        `carries ${bytes(link.bytes)}, ${percent(link.use)} of its capacity`,
      ),
      h(
        'h3',
        {},
        `At ${time(state.cursor)}: ${percent(loadAt(link, state.cursor))} full, ${now.length} ` +
        `transfer${now.length === 1 ? '' : 's'}`,
      ),
      h(
        'ul',
        {},
        ...now
          .slice(0, 12)
          .map((span) =>
            h(
              'li',
              {},
              h(
                'button',
                { click: () => zoom(span) },
                opLabel(run, span),
                ` rank ${run.shownOf(span).rank}`,
              ),
            ),
          ),
      ),
      h('h3', {}, 'Who uses it'),
      table(
        [
          {
            name: 'op',
            text: (one) => opLabel(run, one.span),
            value: (one) => run.nameOf(one.span),
          },
          {
            name: 'axis',
            text: (one) => run.classOf(one.span).name,
            value: (one) => run.classOf(one.span).name,
          },
          { name: 'times', text: (one) => whole(one.spans), value: (one) => one.spans },
          { name: 'time', text: (one) => time(one.took), value: (one) => one.took },
        ],
        [...sums.values()],
        { sort: 3, click: (one) => zoom(one.span), label: 'Ops over this link' },
      ),
    );
  };
  const draw = () => {
    if (!isVisible(element)) return;
    sheet.element.style.height = `${Math.max(Math.min(run.links.length, 300) * row, 60)}px`;
    for (const { element: path, records } of drawn) {
      const load = Math.max(...records.map((one) => loadAt(run.links[one], state.cursor)));
      path.style.stroke = load > 0.001 ? loadColor(load) : color('--idle');
      const isChosen = state.link?.run === run && records.includes(state.link.link);
      path.classList.toggle('chosen', isChosen);
    }
    for (const { element: dot, records } of dotted) {
      const load = Math.max(...records.map((one) => loadAt(run.links[one], state.cursor)));
      dot.style.fill = load > 0.001 ? loadColor(load) : '';
    }
    sheet.draw();
  };
  const scale = h(
    'span',
    { class: 'scale' },
    'empty ',
    ...[0, 0.2, 0.4, 0.6, 0.8, 1].map((share) =>
      h('i', { class: 'swatch', style: `background:${loadColor(share)}` }),
    ),
    ' full',
  );
  three.append(picture, heat, users);
  const element = h(
    'div',
    { class: 'panel fill' },
    h(
      'div',
      { class: 'controls' },
      runPicker({ page: { runs } } as unknown as State, (one) => {
        run = one;
        build();
        draw();
        drawUsers();
      }),
      note,
    ),
    three,
  );
  const tell = () => {
    const left_out =
      run.linksLeftOut > 0 ? `, ${whole(run.linksLeftOut)} that carry less are left out` : '';
    note.replaceChildren(
      h(
        'span',
        {},
        `${run.cluster?.name ?? ''}: links by load at the cursor (${time(state.cursor)})`,
      ),
      scale,
      h('span', {}, `${run.links.length} links or kinds of links in use${left_out}`),
    );
  };
  state.on('window', draw);
  state.on('cursor link', () => {
    if (!isVisible(element)) return;
    draw();
    tell();
    drawUsers();
  });
  build();
  return {
    id: 'cluster',
    name: 'Cluster and links',
    element,
    show: () => {
      tell();
      draw();
      drawUsers();
    },
  };
}

function drawLoads(
  context: CanvasRenderingContext2D,
  link: Link,
  left: number,
  y: number,
  wide: number,
  tall: number,
  from: number,
  to: number,
): void {
  const pixel = (to - from) / wide;
  let i = Math.max(upper(link.at, from) - 1, 0);
  let begin = 0;
  let ink = '';
  const flush = (end: number) => {
    if (ink && end > begin) {
      context.fillStyle = ink;
      context.fillRect(left + begin, y, end - begin, tall);
    }
  };
  for (let x = 0; x < wide; ++x) {
    // The mean over the pixel.
    const start = from + x * pixel;
    const end = start + pixel;
    let sum = 0;
    let at = start;
    while (i + 1 < link.at.length && link.at[i + 1] <= start) ++i;
    for (let j = i; j < link.at.length && link.at[j] < end; ++j) {
      const next = Math.min(j + 1 < link.at.length ? link.at[j + 1] : end, end);
      if (next > at) {
        sum += link.share[j] * (next - Math.max(at, link.at[j]));
        at = next;
      }
    }
    const load = sum / pixel / 1000;
    const now = load < 0.002 ? '' : loadColor(Math.round(load * 64) / 64);
    if (now !== ink) {
      flush(x);
      begin = x;
      ink = now;
    }
  }
  flush(wide);
}
