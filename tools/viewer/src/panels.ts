// The views below the timeline, which share its window, cursor and choice.
import { groups, loadAt, type Group, type Shares, viewOf, upper } from './analysis';
import { loadColor, Sheet } from './canvas';
import { kPhases, type Link, type Run, type ShownRank } from './data';
import type { State } from './state';
import { bytes, type Column, h, percent, rate, s, table, time, whole } from './text';
import { color, describe, fitted, type Timeline } from './timeline';

export interface Panel {
  id: string;
  name: string;
  element: HTMLElement;
  show(): void;  // it becomes visible: bring it up to date
}

function swatch(fill: string): HTMLElement { return h('i', { class: 'swatch', style: `background:${fill}` }); }

function opLabel(run: Run, span: number): HTMLElement {
  return h('span', {}, swatch(run.classOf(span).fill), run.nameOf(span));
}

function runPicker(state: State, changed: (run: Run) => void): HTMLElement | null {
  if (state.page.runs.length < 2) return null;
  const pick = h('select', { 'aria-label': 'Which step', change: () => changed(state.page.runs[pick.selectedIndex]) },
    ...state.page.runs.map((run) => h('option', {}, `${run.letter}  ${run.title}`)));
  return h('label', {}, 'Step ', pick);
}

// ---- What is chosen -------------------------------------------------------------------------

export function selectionPanel(state: State, timeline: Timeline): Panel {
  const body = h('div', { class: 'columns' });
  const element = h('div', { class: 'panel' }, body);
  let pivot = 'name';

  const link = (run: Run, span: number, why: string) => h('tr', { class: 'link', tabindex: 0,
    click: () => {
      timeline.reveal(run, span);
      state.choose({ run, span }, true);
    } }, h('td', {}, opLabel(run, span)), h('td', {}, `rank ${run.shownOf(span).rank}`),
    h('td', {}, why), h('td', { class: 'number' }, `${time(run.begin[span])} to ${time(run.end[span])}`));

  const chosen = () => {
    const { run, span } = state.chosen!;
    const waited = run.waitedFor(span);
    const waiters = run.waitsFor(span);
    const list = (title: string, rows: { span: number; why: string }[], none: string) => h('div', {},
      h('h3', {}, title),
      rows.length === 0 ? h('p', { class: 'note' }, none) : h('table', {}, h('tbody', {},
        ...rows.slice(0, 40).map((row) => link(run, row.span, row.why)))));
    return [
      h('div', {}, h('h3', {}, opLabel(run, span)),
        h('table', { class: 'facts' }, h('tbody', {}, ...describe(run, span).map(([name, value]) =>
          h('tr', {}, h('th', { scope: 'row' }, name), h('td', {}, value)))))),
      list('It waited for', waited, 'nothing: it could begin at once'),
      list('What waits for it', waiters, run.knowsWaits ? 'nothing does' : 'a timeline file does not say'),
    ];
  };

  const range = () => {
    const [from, to] = state.selection ?? [Math.max(state.from, 0), Math.min(state.to, state.end)];
    const pick = h('select', { 'aria-label': 'Rows of the table', change: () => {
      pivot = pick.value;
      draw();
    } }, ...['name', 'axis', 'layer', 'phase', 'rank'].map((one) => h('option', { selected: one === pivot }, one)));
    const tables = state.page.runs.map((run) => {
      const ranks = shownRanks(timeline, run);
      const key = (span: number) => pivot === 'name' ? run.nameOf(span) : pivot === 'axis' ? run.classOf(span).name
          : pivot === 'layer' ? (run.layerOf(span) < 0 ? 'outside the layers' : `layer ${run.layerOf(span)}`)
          : pivot === 'phase' ? kPhases[run.ops.phase[run.op[span]]] : `rank ${run.shownOf(span).rank}`;
      const rows = groups(run, ranks, from, to, key);
      const length = Math.max(to - from, 1e-9) * Math.max(ranks.length, 1);
      const isOneColor = pivot === 'name' || pivot === 'axis';
      const sums = ranks.map((shown) => viewOf(run, shown).shares(from, Math.min(to, run.step)));
      const mean = (part: keyof Shares) => sums.reduce((sum, one) => sum + one[part], 0) / Math.max(sums.length, 1);
      const columns: Column<Group>[] = [
        { name: pivot, text: (row) => h('span', {}, isOneColor ? swatch(run.classes[row.cls].fill) : null, row.name), value: (row) => row.name },
        { name: 'spans', text: (row) => whole(row.spans), value: (row) => row.spans },
        { name: 'time', title: 'sum over the ranks that are shown', text: (row) => time(row.took), value: (row) => row.took },
        { name: 'of the range', text: (row) => percent(row.took / length), value: (row) => row.took / length },
        { name: 'exposed', text: (row) => row.exposed > 0 ? time(row.exposed) : '', value: (row) => row.exposed },
        { name: 'waited', text: (row) => row.waited > 0 ? time(row.waited) : '', value: (row) => row.waited },
        { name: 'bytes', text: (row) => row.bytes > 0 ? bytes(row.bytes) : '', value: (row) => row.bytes },
      ];
      return h('div', { class: 'wide' },
        h('h3', {}, `${run.letter} ${state.selection ? 'Selected' : 'In view'}: ${time(to - from)}, ${ranks.length} rank${ranks.length === 1 ? '' : 's'}`),
        h('p', {}, 'Mean over ranks: compute ', h('b', {}, time(mean('compute'))), ', exposed ', h('b', {}, time(mean('exposed'))),
          ', waiting ', h('b', {}, time(mean('waiting'))), ', bubble ', h('b', {}, time(mean('bubble'))), '; hidden ', h('b', {}, time(mean('hidden')))),
        table(columns, rows, { sort: 2, label: 'Sums of the range' }));
    });
    return [h('div', { class: 'wide' }, h('p', { class: 'note' }, 'Rows by ', pick, state.selection ? '' :
      ' for what is in view; drag over the timeline to select a range'), ...tables)];
  };

  const draw = () => {
    if (!isVisible(element)) return;
    body.replaceChildren(...(state.chosen ? chosen() : range()));
  };
  state.on('chosen selected selection ranks', draw);
  let later = 0;
  state.on('window', () => {
    if (state.chosen || state.selection) return;
    clearTimeout(later);
    later = window.setTimeout(draw, 200);
  });
  return { id: 'selection', name: 'Selection', element, show: draw };
}

function shownRanks(timeline: Timeline, run: Run): ShownRank[] {
  return [...new Set(timeline.ranks.filter((one) => one.run === run).map((one) => one.shown))];
}

export function isVisible(element: HTMLElement): boolean { return element.offsetParent !== null; }

// ---- Where the time goes --------------------------------------------------------------------

interface Bar { label: string; parts: number[]; hidden: number }

export function breakdownPanel(state: State, timeline: Timeline): Panel {
  let run = state.page.runs[0];
  let by = 'rank';
  const body = h('div', {});
  const pick = h('select', { 'aria-label': 'By', change: () => {
    by = pick.value;
    draw();
  } }, ...['rank', 'layer', 'axis'].map((one) => h('option', {}, one)));
  const element = h('div', { class: 'panel' }, h('p', { class: 'controls' },
    runPicker(state, (one) => {
      run = one;
      draw();
    }), h('label', {}, 'By ', pick)), body);
  const names = ['compute', 'exposed', 'waiting', 'bubble'];
  const inks = ['--compute', '--exposed', '--waiting', '--bubble'];

  const bars = (title: string, rows: Bar[], most: number, note: string, parts: number[]) => {
    const width = 640;
    const tall = 20;
    const left = 190;
    const svg = s('svg', { viewBox: `0 0 ${left + width + 280} ${rows.length * tall + 4}`, class: 'bars', role: 'img', 'aria-label': title });
    rows.forEach((row, i) => {
      const y = i * tall + 2;
      svg.append(s('text', { x: left - 8, y: y + 12, 'text-anchor': 'end', class: 'label' }, row.label));
      let x = left;
      row.parts.forEach((part, j) => {
        const wide = part / most * width;
        if (wide > 0) {
          const rect = s('rect', { x, y, width: wide, height: tall - 5, class: `part-${names[parts[j]]}` });
          rect.append(s('title', {}, `${row.label}: ${names[parts[j]]} ${time(part)}`));
          svg.append(rect);
        }
        x += wide;
      });
      if (row.hidden > 0) {
        const rect = s('rect', { x: left, y: y + tall - 5, width: row.hidden / most * width, height: 3, class: 'part-hidden' });
        rect.append(s('title', {}, `${row.label}: hidden communication ${time(row.hidden)}`));
        svg.append(rect);
      }
      const sum = row.parts[0];
      svg.append(s('text', { x: x + 6, y: y + 12, class: 'value' },
        by === 'axis' ? `${time(row.parts[0])} exposed, ${time(row.hidden)} hidden` :
        `${time(sum)} ${names[parts[0]]}${row.parts[1] > 0 ? `, ${time(row.parts[1])} exposed` : ''}`));
    });
    return h('div', {}, h('h3', {}, title), h('p', { class: 'legend' },
      ...parts.map((part) => h('span', {}, h('i', { class: 'swatch', style: `background:var(${inks[part]})` }), names[part])),
      h('span', {}, h('i', { class: 'swatch', style: 'background:var(--hidden)' }), 'hidden communication'), note), svg);
  };

  const draw = () => {
    if (!isVisible(element)) return;
    const ranks = run.shown;
    if (by === 'rank') {
      const rows = ranks.slice(0, 64).map((shown) => {
        const shares = viewOf(run, shown).shares();
        const stage = run.roles.length > 1 ? `${run.roles[shown.role].name}, ` : '';
        return { label: `${stage}rank ${shown.rank}${shown.standsFor > 1 ? ` \u00d7${whole(shown.standsFor)}` : ''}`,
          parts: [shares.compute, shares.exposed, shares.waiting, shares.bubble], hidden: shares.hidden };
      });
      body.replaceChildren(bars(`A step of ${time(run.step)} on each kind of rank`, rows, run.step,
        ranks.length > 64 ? `the first 64 of ${ranks.length}` : '', [0, 1, 2, 3]));
      return;
    }
    const used = shownRanks(timeline, run).length ? shownRanks(timeline, run) : ranks.slice(0, 4);
    const weight = 1 / used.length;
    if (by === 'layer') {
      const found = groups(run, used, 0, run.step, (span) => `${run.layerOf(span)} ${run.communicates(span)}`);
      const layers = new Map<number, Bar>();
      for (const group of found) {
        const [layer, communicates] = group.name.split(' ');
        const number = Number(layer);
        let bar = layers.get(number);
        if (!bar) layers.set(number, bar = { label: number < 0 ? 'outside the layers' : `layer ${number}`, parts: [0, 0], hidden: 0 });
        if (communicates === 'true') {
          bar.parts[1] += group.exposed * weight;
          bar.hidden += (group.took - group.exposed) * weight;
        } else bar.parts[0] += group.took * weight;
      }
      const rows = [...layers].sort((a, b) => a[0] - b[0]).map(([, bar]) => bar);
      body.replaceChildren(bars('By layer, mean over ranks', rows, Math.max(...rows.map((row) => row.parts[0] + row.parts[1])),
        'of the ranks that are shown', [0, 1]));
      return;
    }
    const found = groups(run, used, 0, run.step, (span) => run.communicates(span) ? run.classOf(span).name : '');
    const rows = found.filter((group) => group.name !== '').sort((a, b) => b.took - a.took)
        .map((group) => ({ label: group.name, parts: [group.exposed * weight], hidden: (group.took - group.exposed) * weight }));
    body.replaceChildren(bars('By axis, mean over ranks', rows,
      Math.max(...rows.map((row) => Math.max(row.parts[0], row.hidden)), 1e-9), 'of the ranks that are shown', [1]));
  };
  state.on('ranks', draw);
  return { id: 'breakdown', name: 'Breakdown', element, show: draw };
}

// ---- Memory ---------------------------------------------------------------------------------

export function memoryPanel(state: State): Panel | null {
  if (state.page.runs.every((run) => run.memory.length === 0)) return null;
  const curves = state.page.runs.flatMap((run) => run.memory.map((curve) => ({ run, curve })));
  let at = 0;
  // The fullest first.
  curves.forEach((one, i) => { if (peak(one.curve).total > peak(curves[at].curve).total) at = i; });
  const pick = h('select', { 'aria-label': 'Rank', change: () => {
    at = pick.selectedIndex;
    draw();
  } }, ...curves.map(({ run, curve }, i) => h('option', { selected: i === at }, `${run.letter} rank ${curve.rank}`)));
  const kinds = ['parameters', 'gradients', 'optimizer', 'activations', 'buffers'] as const;
  const inks = ['#46586a', '#77899b', '#a9b6c2', '#4f9d5d', '#b9cf6c'];  // none of them used for a kind of op
  const line = h('p', { class: 'legend' });
  const sheet = new Sheet('Memory over time', (context, width, height) => {
    const { run, curve } = curves[at];
    const left = 70;
    const { from, to } = state;
    const x = (ns: number) => left + (ns - from) / (to - from) * (width - left - 8);
    const capacity = run.result?.memory_capacity_bytes ?? memoryCapacity(run);
    const most = Math.max(peak(curve).total, capacity) * 1.06;
    const y = (value: number) => 8 + (height - 30) * (1 - value / most);
    const fixed = [curve.parameters, curve.gradients, curve.optimizer];
    let below = 0;
    const end = Math.min(x(run.step), width - 8);
    const start = Math.max(x(0), left);
    fixed.forEach((value, i) => {
      context.fillStyle = inks[i];
      context.fillRect(start, y(below + value), Math.max(end - start, 0), y(below) - y(below + value));
      below += value;
    });
    const pixels = Math.max(1, Math.floor(width - left - 8));
    // The fullest moment of each pixel.
    let point = Math.max(upper(curve.at, from) - 1, 0);
    for (let i = 0; i < pixels; ++i) {
      const begin = from + i / pixels * (to - from);
      const after = from + (i + 1) / pixels * (to - from);
      if (after < 0 || begin > run.step) continue;
      let best = point;
      while (point + 1 < curve.at.length && curve.at[point + 1] <= after) {
        ++point;
        if (curve.activations[point] + curve.buffers[point] > curve.activations[best] + curve.buffers[best]) best = point;
      }
      const activations = y(below + curve.activations[best]);
      const buffers = y(below + curve.activations[best] + curve.buffers[best]);
      context.fillStyle = inks[3];
      context.fillRect(left + i, activations, 1.2, y(below) - activations);
      context.fillStyle = inks[4];
      context.fillRect(left + i, buffers, 1.2, activations - buffers);
    }
    context.font = '11px system-ui, sans-serif';
    context.fillStyle = color('--faint');
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    for (let i = 0; i <= 4; ++i) {
      const value = most / 1.06 * i / 4;
      context.fillText(bytes(value), left - 6, y(value));
      context.fillRect(left - 3, y(value), 3, 1);
    }
    context.textAlign = 'left';
    if (capacity > 0) {
      context.strokeStyle = color('--ink');
      context.setLineDash([6, 4]);
      context.beginPath();
      context.moveTo(left, y(capacity));
      context.lineTo(width - 8, y(capacity));
      context.stroke();
      context.setLineDash([]);
      context.fillStyle = color('--ink');
      context.fillText(`the device has ${bytes(capacity)}`, left + 6, y(capacity) + 9);
    }
    drawCursor(context, x(state.cursor), left, width, height);
    const now = upper(curve.at, state.cursor) - 1;
    const values = [...fixed, now < 0 ? 0 : curve.activations[now], now < 0 ? 0 : curve.buffers[now]];
    const top = peak(curve);
    line.replaceChildren(...kinds.map((kind, i) => h('span', {}, swatch(inks[i]), `${kind} ${bytes(values[i])}`)),
      h('span', {}, `at ${time(state.cursor)}: ${bytes(values.reduce((sum, one) => sum + one, 0))}`),
      h('button', { click: () => state.moveCursor(top.at) }, `fullest: ${bytes(top.total)} at ${time(top.at)}`));
  });
  const draw = () => sheet.draw();
  state.on('window cursor', draw);
  const element = h('div', { class: 'panel fill' }, h('div', { class: 'controls' }, h('label', {}, 'Memory of ', pick), line), sheet.element);
  sheet.canvas.addEventListener('pointermove', (event) => followCursor(state, event, sheet, 70, 8));
  return { id: 'memory', name: 'Memory', element, show: draw };
}

function memoryCapacity(run: Run): number {
  const memory = run.result?.memory;
  return memory?.['capacity'] ?? 0;
}

function peak(curve: { at: Float64Array; activations: Float64Array; buffers: Float64Array; parameters: number; gradients: number; optimizer: number }): { at: number; total: number } {
  let best = 0;
  for (let i = 1; i < curve.at.length; ++i)
    if (curve.activations[i] + curve.buffers[i] > curve.activations[best] + curve.buffers[best]) best = i;
  return { at: curve.at[best] ?? 0, total: curve.parameters + curve.gradients + curve.optimizer +
    (curve.activations[best] ?? 0) + (curve.buffers[best] ?? 0) };
}

function drawCursor(context: CanvasRenderingContext2D, x: number, left: number, width: number, height: number): void {
  if (x < left || x > width) return;
  context.fillStyle = color('--cursor');
  context.fillRect(Math.round(x), 0, 1, height);
}

function followCursor(state: State, event: PointerEvent, sheet: Sheet, left: number, right: number): void {
  const box = sheet.canvas.getBoundingClientRect();
  const share = (event.clientX - box.left - left) / (sheet.width - left - right);
  if (share >= 0 && share <= 1) state.moveCursor(state.from + share * (state.to - state.from));
}

// ---- The cluster and its links --------------------------------------------------------------

export function clusterPanel(state: State, timeline: Timeline): Panel | null {
  const runs = state.page.runs.filter((run) => run.cluster || run.links.length);
  if (runs.length === 0) return null;
  let run = runs[0];
  const picture = h('div', { class: 'picture' });
  const users = h('div', { class: 'users' });
  const note = h('p', { class: 'legend' });
  let drawn: { element: SVGElement; records: number[] }[] = [];

  const build = () => {
    picture.replaceChildren();
    drawn = [];
    const cluster = run.cluster;
    if (!cluster) {
      picture.append(h('p', { class: 'note' }, 'the cluster is not known'));
      return;
    }
    const svg = s('svg', { viewBox: `0 0 ${cluster.width} ${cluster.height}`, role: 'img', 'aria-label': `Cluster ${cluster.name}` });
    for (const [x, y, width, height, label] of cluster.nodes) {
      svg.append(s('rect', { x, y, width, height, rx: 8, class: 'node' }));
      svg.append(s('text', { x: x + 8, y: y + 16, class: 'node-name' }, label));
    }
    for (const link of cluster.links) {
      const path = s('path', { d: link.path, class: link.records.length ? 'cable' : 'cable unused', 'stroke-width': (link.records.length ? 4.5 : 1.5) * (cluster.links.length > 200 ? 0.4 : 1) });
      path.append(s('title', {}, `${link.title}${link.records.length ? '' : ' (carries nothing)'}`));
      if (link.records.length) {
        path.setAttribute('tabindex', '0');
        path.addEventListener('click', () => chooseLink(fullest(link.records)));
        drawn.push({ element: path, records: link.records });
      }
      svg.append(path);
    }
    for (const [x, y, width, height, kind, label, title, dots] of cluster.boxes) {
      const box = s('g', {}, s('title', {}, `${title} (${kind})`),
        s('rect', { x: x - width / 2, y: y - height / 2, width, height, rx: 6, class: `box ${kind}` }),
        s('text', { x, y: dots ? y + height / 2 - 6 : y + 4, 'text-anchor': 'middle', class: 'box-name' }, label));
      svg.append(box);
    }
    for (const [x, y, text] of cluster.captions) svg.append(s('text', { x, y, 'text-anchor': 'middle', class: 'node-name' }, text));
    picture.append(svg);
  };
  const fullest = (records: number[]) => records.reduce((best, one) =>
    loadAt(run.links[one], state.cursor) > loadAt(run.links[best], state.cursor) ? one : best, records[0]);

  const chooseLink = (link: number) => {
    state.link = { run, link };
    state.tell('link');
  };
  const row = 15;
  const left = 190;
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
      context.fillText(fitted(context, `${link.name}${link.count > 1 ? ` \u00d7${link.count}` : ''}`, left - 10), left - 6, y + row / 2);
      context.textAlign = 'left';
      drawLoads(context, link, left, y, wide, row - 2, from, to);
    });
    drawCursor(context, left + (state.cursor - from) / (to - from) * wide, left, width, height);
  });
  const heat = h('div', { class: 'heat' }, sheet.element);
  sheet.canvas.addEventListener('pointermove', (event) => followCursor(state, event, sheet, left, 6));
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
      h('p', {}, `${link.kind}, ${rate(link.capacity)}${link.count > 1 ? `, ${whole(link.count)} that do the same` : ''}; carries ${bytes(link.bytes)}, ${percent(link.use)} of its capacity`),
      h('h3', {}, `At ${time(state.cursor)}: ${percent(loadAt(link, state.cursor))} full, ${now.length} transfer${now.length === 1 ? '' : 's'}`),
      h('ul', {}, ...now.slice(0, 12).map((span) => h('li', {}, h('button', { click: () => zoom(span) },
        opLabel(run, span), ` rank ${run.shownOf(span).rank}`)))),
      h('h3', {}, 'Who uses it'),
      table([
        { name: 'op', text: (one) => opLabel(run, one.span), value: (one) => run.nameOf(one.span) },
        { name: 'axis', text: (one) => run.classOf(one.span).name, value: (one) => run.classOf(one.span).name },
        { name: 'times', text: (one) => whole(one.spans), value: (one) => one.spans },
        { name: 'time', text: (one) => time(one.took), value: (one) => one.took },
      ], [...sums.values()], { sort: 3, click: (one) => zoom(one.span), label: 'Ops over this link' }));
  };
  const draw = () => {
    if (!isVisible(element)) return;
    sheet.element.style.height = `${Math.max(Math.min(run.links.length, 300) * row, 60)}px`;
    for (const { element: path, records } of drawn) {
      const load = Math.max(...records.map((one) => loadAt(run.links[one], state.cursor)));
      path.setAttribute('stroke', load > 0.001 ? loadColor(load) : color('--idle'));
      const isChosen = state.link?.run === run && records.includes(state.link.link);
      path.classList.toggle('chosen', isChosen);
    }
    sheet.draw();
  };
  const scale = h('span', { class: 'scale' }, 'empty ', ...[0, 0.2, 0.4, 0.6, 0.8, 1].map((share) =>
    h('i', { class: 'swatch', style: `background:${loadColor(share)}` })), ' full');
  const element = h('div', { class: 'panel fill' },
    h('div', { class: 'controls' }, runPicker({ page: { runs } } as unknown as State, (one) => {
      run = one;
      build();
      draw();
      drawUsers();
    }), note), h('div', { class: 'three' }, picture, heat, users));
  const tell = () => {
    const left_out = run.linksLeftOut > 0 ? `, ${whole(run.linksLeftOut)} that carry less are left out` : '';
    note.replaceChildren(h('span', {}, `${run.cluster?.name ?? ''}: links by load at the cursor (${time(state.cursor)})`), scale,
      h('span', {}, `${run.links.length} links or kinds of links in use${left_out}`));
  };
  state.on('window', draw);
  state.on('cursor link', () => {
    if (!isVisible(element)) return;
    draw();
    tell();
    drawUsers();
  });
  build();
  return { id: 'cluster', name: 'Cluster and links', element, show: () => {
    tell();
    draw();
    drawUsers();
  } };
}

function drawLoads(context: CanvasRenderingContext2D, link: Link, left: number, y: number, wide: number, tall: number,
                   from: number, to: number): void {
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

// ---- Collectives ----------------------------------------------------------------------------

export function collectivesPanel(state: State, timeline: Timeline): Panel {
  const body = h('div', {});
  let text = '';
  let exposedOnly = false;
  const filter = h('input', { type: 'search', placeholder: 'name, axis, layer 3, rank 0 \u2026', 'aria-label': 'Filter', input: () => {
    text = filter.value.toLowerCase();
    draw();
  } });
  const only = h('input', { type: 'checkbox', change: () => {
    exposedOnly = only.checked;
    draw();
  } });
  const element = h('div', { class: 'panel' }, h('p', { class: 'controls' }, h('label', {}, 'Filter ', filter),
    h('label', {}, only, ' exposed only'), h('span', { class: 'note' }, 'of the ranks that are shown; a click zooms')), body);
  interface Row { run: Run; span: number; exposed: number }
  const draw = () => {
    if (!isVisible(element)) return;
    const words = text.split(/\s+/).filter((word) => word);
    const rows: Row[] = [];
    for (const run of state.page.runs) {
      const hay = run.ops.name.map((name, i) => ` ${run.letter} ${name} ${run.ops.kind[i]} ${run.classes[run.ops.cls[i]].name} `.toLowerCase() +
        (run.ops.layer[i] >= 0 ? `layer ${run.ops.layer[i]} ` : ''));
      for (const shown of shownRanks(timeline, run)) {
        const exposed = viewOf(run, shown).exposedOfSpans();
        for (let i = shown.first; i < shown.end; ++i) {
          if (!run.communicates(i) || run.end[i] === run.begin[i]) continue;
          const out = exposed[i - shown.first];
          if (exposedOnly && out <= 0) continue;
          if (words.length && !words.every((word) => hay[run.op[i]].includes(word) || `rank ${shown.rank} `.includes(`${word} `))) continue;
          rows.push({ run, span: i, exposed: out });
        }
      }
    }
    const took = (row: Row) => row.run.end[row.span] - row.run.begin[row.span];
    const several = state.page.runs.length > 1;
    const columns: Column<Row>[] = [
      ...(several ? [{ name: 'step', text: (row: Row) => row.run.letter, value: (row: Row) => row.run.letter }] : []),
      { name: 'name', text: (row) => opLabel(row.run, row.span), value: (row) => row.run.nameOf(row.span) },
      { name: 'axis', text: (row) => row.run.classOf(row.span).name, value: (row) => row.run.classOf(row.span).name },
      { name: 'layer', text: (row) => row.run.layerOf(row.span) < 0 ? '' : String(row.run.layerOf(row.span)), value: (row) => row.run.layerOf(row.span) },
      { name: 'rank', text: (row) => String(row.run.shownOf(row.span).rank), value: (row) => row.run.shownOf(row.span).rank },
      { name: 'begins', text: (row) => time(row.run.begin[row.span]), value: (row) => row.run.begin[row.span] },
      { name: 'takes', text: (row) => time(took(row)), value: took },
      { name: 'exposed', text: (row) => row.exposed > 0 ? time(row.exposed) : '', value: (row) => row.exposed },
      { name: 'waited', text: (row) => row.run.begin[row.span] > row.run.ready[row.span] ? time(row.run.begin[row.span] - row.run.ready[row.span]) : '',
        value: (row) => row.run.begin[row.span] - row.run.ready[row.span] },
      { name: 'bytes', text: (row) => row.run.bytesOf(row.span) > 0 ? bytes(row.run.bytesOf(row.span)) : '', value: (row) => row.run.bytesOf(row.span) },
      { name: 'busbw', text: (row) => row.run.busbwOf(row.span) > 0 ? rate(row.run.busbwOf(row.span)) : '', value: (row) => row.run.busbwOf(row.span) },
      { name: 'held back by', text: (row) => row.run.bottleneckOf(row.span)?.link.name ?? '', value: (row) => row.run.bottleneckOf(row.span)?.link.name ?? '' },
    ];
    body.replaceChildren(h('p', { class: 'note' }, `${whole(rows.length)} transfers`), table(columns, rows, {
      sort: columns.findIndex((column) => column.name === 'exposed'), label: 'Collectives', click: (row) => {
        timeline.reveal(row.run, row.span);
        state.choose({ run: row.run, span: row.span }, true);
      } }));
  };
  state.on('ranks', draw);
  return { id: 'collectives', name: 'Collectives', element, show: draw };
}
