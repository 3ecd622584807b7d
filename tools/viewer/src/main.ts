// The page of `rehearse report` and `rehearse lessons`: unpacks its data and shows them.
import styles from './style.css';
import plotStyles from 'uplot/dist/uPlot.min.css';

import { readPage } from './data';
import { unpack, unpackJson } from './decode';
import { showFilm } from './film';
import { readFilm } from './film_state';
import { showLessons } from './lessons';
import { type LiveScenario, LivePanel } from './live';
import { h } from './text';
import { showPage } from './view';

function fail(error: unknown): void {
  document.body.replaceChildren(
    h(
      'main',
      { class: 'failure' },
      h('h1', {}, 'This page cannot be shown'),
      h('p', {}, error instanceof Error ? error.message : String(error)),
      h('p', {}, 'It was written by `rehearse report`; writing it again may help.'),
    ),
  );
}

// What tests drive.
function expose(parts: Record<string, unknown>): void {
  (window as unknown as Record<string, unknown>)['rehearse'] = {
    ...parts,
    spent: performance.now() - loaded,
  };
  document.documentElement.dataset['ready'] = 'yes';
}

// What the page holds under a name: megabytes that nobody needs a second time.
function takeText(id: string): string | null {
  const element = document.getElementById(id);
  const text = element?.textContent ?? null;
  element?.remove();
  return text;
}

const loaded = performance.now();

async function start(): Promise<void> {
  const lessons = takeText('rehearse-lessons');
  const live = takeText('rehearse-live');
  // In the page, or what bundle/simulator.js has said.
  const beside = (globalThis as Record<string, unknown>)['rehearseSimulator'];
  const simulator = takeText('rehearse-simulator') ?? (typeof beside === 'string' ? beside : '');
  const root = h('div', { class: 'view' });
  if (lessons !== null) {
    const written = await unpackJson(lessons);
    const data = (name: string) => takeText(`rehearse-data-${name}`) ?? '';
    document.head.append(h('style', {}, styles + plotStyles));
    await showLessons(written, data, simulator, root, expose);
    return;
  }
  const film = takeText('rehearse-film');
  if (film !== null) {
    const unpacked = await unpack(film);
    document.head.append(h('style', {}, styles + plotStyles));
    showFilm(readFilm(unpacked), expose);
    return;
  }
  const page = readPage(await unpack(takeText('rehearse-data') ?? ''));
  const unpacked = performance.now() - loaded;
  document.head.append(h('style', {}, styles + plotStyles));
  if (live === null) {
    document.body.replaceChildren(root);
    expose({ ...showPage(page, root).parts, unpacked });
    return;
  }
  const panel = new LivePanel(root, simulator, expose);
  document.body.classList.add('live');
  document.body.replaceChildren(
    h(
      'aside',
      { class: 'side' },
      h('h2', {}, 'Play it again'),
      h(
        'p',
        { class: 'note' },
        'Every change is simulated in this page, and shown below the step as it was.',
      ),
      panel.element,
    ),
    root,
  );
  panel.take((await unpackJson(live)) as unknown as LiveScenario, page);
}

start().catch((error) => {
  console.warn(error);
  fail(error);
});
