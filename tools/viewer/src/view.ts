// Shows steps and tables: lays out the views and listens to keys.
import { comparePanel } from './compare';
import type { Page } from './data';
import { dotsPanel } from './dots';
import { breakdownPanel } from './breakdown_panel';
import { clusterPanel } from './cluster_panel';
import { collectivesPanel } from './collectives_panel';
import { machinesView } from './machines';
import { memoryPanel } from './memory_panel';
import { networkPanel } from './network_panel';
import { forgetColors } from './paint';
import type { Panel } from './panel';
import { pipelineLegend } from './pipelines';
import { differenceOf, firstRanks } from './rows';
import { selectionPanel } from './selection_panel';
import { State } from './state';
import { h, percent, time, whole } from './text';
import { Timeline } from './timeline';
import { makeTour } from './tour';

function theme(): HTMLElement {
  const root = document.documentElement;
  const isDark = () =>
    root.dataset['theme'] === 'dark' ||
    (!root.dataset['theme'] && matchMedia('(prefers-color-scheme: dark)').matches);
  const button = h(
    'button',
    {
      title: 'Light or dark (T)',
      id: 'theme',
      click: () => {
        root.dataset['theme'] = isDark() ? 'light' : 'dark';
        button.dispatchEvent(new CustomEvent('theme', { bubbles: true }));
      },
    },
    'Light / dark',
  );
  return button;
}

function legend(page: Page): HTMLElement {
  const seen = new Map<string, string>();
  for (const run of page.runs) {
    const used = new Set(run.ops.cls);
    run.classes.forEach((one, i) => {
      if (used.has(i)) seen.set(one.name, one.fill);
    });
  }
  return h(
    'div',
    { class: 'legend' },
    ...[...seen].map(([name, fill]) =>
      h('span', {}, h('i', { class: 'swatch', style: `background:${fill}` }), name),
    ),
    page.runs.length > 0 && h('span', {}, h('i', { class: 'swatch hatched' }), 'exposed'),
  );
}

const kMostHigh = 1400; // of the timelines of a page that scrolls
const kBests = 'A step of each best, on one scale of time';

export interface View {
  state: State | null; // of a page with steps
  parts: Record<string, unknown>; // what tests drive
  panel: () => string; // the one that is open
  close: () => void;
}

// Shows the page in `root`. `before` is what was there, whose window and panel are kept.
export function showPage(page: Page, root: HTMLElement, before: View | null = null): View {
  before?.close();
  page.runs.forEach((run, i) => {
    run.letter = page.runs.length > 1 ? String.fromCharCode('A'.charCodeAt(0) + i) : '';
  });
  const listening = new AbortController();
  const { signal } = listening;
  const close = () => listening.abort();
  const title =
    page.runs.length > 0
      ? page.runs.map((run) => run.title).join(' above ')
      : page.tables.map((one) => one.title).join(', ');
  const status = h('span', { class: 'status', role: 'status' });
  const tell = (text: string) => {
    status.textContent = text;
  };
  const header = h('header', {}, page.machines ? null : h('h1', {}, title));
  const tabs = h('div', { class: 'tabs', role: 'tablist' });
  const below = h('div', { class: 'below' });
  const panels: Panel[] = [];
  let current = '';
  const open = (id: string) => {
    const panel = panels.find((one) => one.id === id) ?? panels[0];
    current = panel.id;
    for (const one of panels) {
      one.element.classList.toggle('open', one === panel);
      const tab = tabs.querySelector(`#tab-${one.id}`)!;
      tab.setAttribute('aria-selected', String(one === panel));
    }
    panel.show();
  };
  const add = (panel: Panel | null) => {
    if (!panel) return;
    panels.push(panel);
    panel.element.id = `panel-${panel.id}`;
    panel.element.setAttribute('role', 'tabpanel');
    panel.element.prepend(h('h2', { class: 'print-only' }, panel.name));
    tabs.append(
      h('button', { role: 'tab', id: `tab-${panel.id}`, click: () => open(panel.id) }, panel.name),
    );
    below.append(panel.element);
  };

  let shown: Timeline | null = null;
  const machines = page.machines
    ? machinesView(page.machines, () => shown, [theme()])
    : null;
  if (machines) {
    document.body.classList.add('machine-page');
    document.head.append(h('style', {}, '@page { size: A4 landscape; margin: 10mm; }'));
    document.addEventListener('theme', () => machines.draw(), { signal });
  }

  if (page.runs.length === 0) {
    page.tables.forEach((dots, i) => add(dotsPanel(dots, i)));
    if (!machines) header.append(h('span', { class: 'grow' }), theme());
    root.replaceChildren(...(machines ? [machines.element] : []), header, tabs, below);
    document.body.classList.add('dots-only');
    document.addEventListener(
      'theme',
      () => {
        forgetColors();
        open(current);
      },
      { signal },
    );
    open(panels[0].id);
    return { state: null, parts: {}, panel: () => current, close };
  }

  const state = new State(page);
  if (before?.state && state.havePipelines) state.asPipelines = before.state.asPipelines;
  const timeline = new Timeline(state, tell);
  shown = timeline;
  add(selectionPanel(state, timeline));
  add(breakdownPanel(state, timeline));
  add(comparePanel(state));
  add(memoryPanel(state));
  add(clusterPanel(state, timeline));
  add(networkPanel(state));
  add(collectivesPanel(state, timeline));
  page.tables.forEach((dots, i) => add(dotsPanel(dots, i)));
  const tour = makeTour(state, timeline, open);

  for (const run of page.runs) {
    const result = run.result;
    const facts = [
      `${run.letter ? `${run.letter}: ` : ''}one step takes ${time(run.step)}` +
        differenceOf(page.runs, run),
      `${whole(run.rankCount)} ranks`,
      run.provenance,
    ];
    if (result) {
      const { breakdown } = result;
      facts.push(
        `${percent(breakdown.compute_seconds / result.step_seconds)} compute`,
        `${percent(breakdown.exposed_communication_seconds / result.step_seconds)} exposed`,
      );
      if (result.fidelity) facts.push(`fidelity ${result.fidelity}`);
    }
    if (run.leftOut) facts.push(`spans of ${whole(run.leftOut)} ranks left out`);
    // Of many steps the timeline says as much, of machines the table.
    if (page.runs.length <= 3 && !machines)
      header.append(h('p', { class: 'facts', title: run.source }, facts.join(', ')));
  }
  const search = h('input', {
    type: 'search',
    placeholder: 'Search ops (/)',
    'aria-label': 'Search ops',
    input: () => {
      const found = timeline.find(search.value);
      tell(search.value ? `${whole(found)} found; Enter goes to the next` : '');
    },
    keydown: (event: KeyboardEvent) => {
      if (event.key === 'Enter') timeline.nextMatch(event.shiftKey ? -1 : 1);
      if (event.key === 'Escape') {
        search.value = '';
        timeline.find('');
        tell('');
        timeline.canvas.focus();
      }
      event.stopPropagation();
    },
  });
  const rank = h('input', {
    type: 'text',
    inputmode: 'numeric',
    placeholder: 'rank',
    size: 7,
    'aria-label': 'Show another rank',
    title: 'Show another rank: its number, Enter',
    keydown: (event: KeyboardEvent) => {
      if (event.key === 'Enter') {
        const [, letter, number] = /^\s*([a-z]?)\s*(\d+)\s*$/i.exec(rank.value) ?? [];
        if (number === undefined)
          tell(
            `"${rank.value}" is not a rank; type a ` +
            `number${page.runs.length > 1 ? ', such as B 3' : ''}`,
          );
        else
          tell(
            timeline.addRank(
              page.runs.find((run) => run.letter === letter?.toUpperCase()) ?? page.runs[0],
              Number(number),
            ),
          );
      }
      event.stopPropagation();
    },
  });
  const toggle = (label: string, key: string, get: () => boolean, set: (on: boolean) => void) => {
    const button = h(
      'button',
      {
        'aria-pressed': String(get()),
        title: `${label} (${key})`,
        click: () => {
          set(!get());
          state.tell('options');
        },
      },
      label,
    );
    state.on('options', () => button.setAttribute('aria-pressed', String(get())));
    return button;
  };
  const exposed = toggle(
    'Exposed',
    'E',
    () => state.showExposed,
    (on) => {
      state.showExposed = on;
    },
  );
  const path = page.runs.some((run) => run.path.begin.length > 0)
    ? toggle(
        'Critical path',
        'C',
        () => state.showPath,
        (on) => {
          state.showPath = on;
        },
      )
    : null;
  const isFew = () =>
    timeline.ranks.length < page.runs.reduce((sum, run) => sum + run.shown.length, 0);
  const allRanks = h('button', {
    title: 'Show all ranks that the page holds, or only a few',
    click: () => {
      timeline.setRanks(
        isFew()
          ? page.runs.flatMap((run) => run.shown.map((shown) => ({
                run,
                shown,
                rank: shown.rank,
                alike: shown.standsFor,
              })),
            )
          : page.runs.flatMap((run) => firstRanks(run, 4)),
      );
    },
  });
  const pipelines = state.havePipelines
    ? toggle(
        'As pipelines',
        'P',
        () => state.asPipelines,
        (on) => {
          state.asPipelines = on;
          state.tell('rows');
        },
      )
    : null;
  const messages = timeline.hasMessages
    ? toggle(
        'Messages',
        'M',
        () => state.showMessages,
        (on) => {
          state.showMessages = on;
          state.tell('rows');
        },
      )
    : null;
  const tellRanks = () => {
    const held = page.runs.reduce((sum, run) => sum + run.shown.length, 0);
    allRanks.textContent = isFew() ? `All ${held} ranks` : 'Fewer ranks';
    allRanks.hidden = held <= 2;
  };
  state.on('ranks', tellRanks);
  tellRanks();
  const toolbar = h(
    'div',
    { class: 'toolbar', role: 'toolbar' },
    search,
    rank,
    allRanks,
    exposed,
    path,
    pipelines,
    messages,
    h('button', { title: 'Whole step (F)', click: () => state.showAll() }, 'Whole step'),
    h(
      'button',
      { title: 'How to read this (?)', id: 'tour', click: () => tour.start() },
      'How to read this',
    ),
    machines ? null : h('button', { title: 'Print', click: () => print() }, 'Print'),
    machines ? null : theme(),
    status,
  );

  // A bar between the timeline and what is below it.
  const handle = h('div', {
    class: 'handle',
    role: 'separator',
    'aria-orientation': 'horizontal',
    tabindex: 0,
    title: 'Drag to give the timeline more room',
  });
  const room = (height: number) => {
    const most = machines || page.inColumn ? kMostHigh : window.innerHeight - 190;
    timeline.element.style.height = `${Math.max(90, Math.min(height, most))}px`;
  };
  handle.addEventListener('pointerdown', (event) => {
    handle.setPointerCapture(event.pointerId);
    const from = event.clientY - timeline.element.clientHeight;
    const move = (one: PointerEvent) => room(one.clientY - from);
    handle.addEventListener('pointermove', move);
    handle.addEventListener('pointerup', () => handle.removeEventListener('pointermove', move), {
      once: true,
    });
  });
  handle.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowUp' || event.key === 'ArrowDown')
      room(timeline.element.clientHeight + (event.key === 'ArrowDown' ? 24 : -24));
  });
  const legends = h('div', { class: 'legends' });
  const tellLegend = () => {
    legends.replaceChildren(state.asPipelines ? pipelineLegend(page) : legend(page));
    for (const one of [messages, path, exposed]) if (one) one.disabled = state.asPipelines;
  };
  state.on('rows', () => {
    tellLegend();
    room(Math.min(timeline.wantedHeight, mostRoom()));
  });
  tellLegend();
  if (machines) header.prepend(h('h2', {}, kBests));
  root.replaceChildren(
    ...(machines ? [machines.element] : []),
    header,
    toolbar,
    legends,
    timeline.element,
    handle,
    tabs,
    below,
    tour.element,
    h(
      'footer',
      {},
      `${page.madeBy}. W/S zoom, A/D move, F whole step, drag selects, Shift+drag moves, click ` +
      'chooses, \u2190/\u2192 next op, / searches, E exposed, C critical path, ' +
      `1\u2013${panels.length} views, T light or dark, Esc clears, ? explains.`,
    ),
  );
  // Several steps are what the page is about; of one the views below tell as much.
  const mostRoom = () =>
    machines || page.inColumn ? kMostHigh : window.innerHeight * (page.runs.length > 3 ? 0.74 : page.runs.length > 1 || state.asPipelines ? 0.62 : 0.5);
  room(Math.min(timeline.wantedHeight, mostRoom()));
  const old = before?.state;
  if (old && old.to - old.from < old.end) state.show(old.from, old.to);
  else state.showAll();
  open(before?.panel() ?? page.panel ?? 'selection');
  // Other views stay open while ops are chosen in them.
  state.on('chosen', () => {
    if (state.chosen && current === 'breakdown') open('selection');
  });

  const isWriting = (target: EventTarget | null) =>
    target instanceof HTMLInputElement ||
    target instanceof HTMLSelectElement ||
    target instanceof HTMLTextAreaElement;
  document.addEventListener(
    'keydown',
    (event) => {
      if (isWriting(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
      const at =
        state.cursor >= state.from && state.cursor <= state.to
          ? state.cursor
          : (state.from + state.to) / 2;
      const key = event.key.toLowerCase();
      const acts: Record<string, () => void> = {
        w: () => state.zoom(1 / 1.4, at),
        s: () => state.zoom(1.4, at),
        a: () => state.pan(-0.2),
        d: () => state.pan(0.2),
        f: () => state.showAll(),
        e: () => exposed.click(),
        c: () => path?.click(),
        p: () => pipelines?.click(),
        m: () => messages?.click(),
        t: () => document.getElementById('theme')!.click(),
        '/': () => search.focus(),
        '?': () => tour.start(),
        arrowleft: () => timeline.step(-1),
        arrowright: () => timeline.step(1),
        escape: () => {
          state.select(null);
          state.choose(null);
          tell('');
        },
      };
      const number = Number(key);
      if (Number.isInteger(number) && number >= 1 && number <= panels.length)
        open(panels[number - 1].id);
      else if (acts[key]) acts[key]();
      else return;
      event.preventDefault();
    },
    { signal },
  );
  document.addEventListener(
    'theme',
    () => {
      forgetColors();
      timeline.restyle();
      open(current);
    },
    { signal },
  );
  let themeBefore: string | undefined;
  const printing = (on: boolean) => {
    document.body.classList.toggle('printing', on);
    const root = document.documentElement;
    if (on) {
      themeBefore = root.dataset['theme'];
      root.dataset['theme'] = 'light';
    } else if (themeBefore) root.dataset['theme'] = themeBefore;
    else delete root.dataset['theme'];
    forgetColors();
    timeline.print(on);
    // Opened for paper only, which is no wish to see the change.
    for (const answer of document.querySelectorAll<HTMLDetailsElement>('.answer')) {
      if (on && !answer.open) {
        answer.dataset['printed'] = 'yes';
        answer.open = true;
      } else if (!on && answer.dataset['printed']) answer.open = false;
    }
    for (const panel of panels) if (on || panel.id === current) panel.show();
    machines?.draw();
  };
  window.addEventListener('beforeprint', () => printing(true), { signal });
  window.addEventListener('afterprint', () => printing(false), { signal });
  timeline.drawNow();
  const parts = { state, timeline, open, panels: panels.map((panel) => panel.id) };
  return { state, parts, panel: () => current, close };
}
