// What is chosen, or sums over what is in view or selected.
import { type Group, groups, type Shares, viewOf } from './analysis';
import { kPhases, type Run } from './data';
import { describe } from './describe';
import { isVisible, opLabel, type Panel, shownRanks, swatch } from './panel';
import type { State } from './state';
import { bytes, type Column, h, percent, table, time, whole } from './text';
import type { Timeline } from './timeline';

export function selectionPanel(state: State, timeline: Timeline): Panel {
  const body = h('div', { class: 'columns' });
  const element = h('div', { class: 'panel' }, body);
  let pivot = 'name';

  const link = (run: Run, span: number, why: string) =>
    h(
      'tr',
      {
        class: 'link',
        tabindex: 0,
        click: () => {
          timeline.reveal(run, span);
          state.choose({ run, span }, true);
        },
      },
      h('td', {}, opLabel(run, span)),
      h('td', {}, `rank ${run.shownOf(span).rank}`),
      h('td', {}, why),
      h('td', { class: 'number' }, `${time(run.begin[span])} to ${time(run.end[span])}`),
    );

  const chosen = () => {
    const { run, span } = state.chosen!;
    const waited = run.waitedFor(span);
    const waiters = run.waitsFor(span);
    const list = (title: string, rows: { span: number; why: string }[], none: string) =>
      h(
        'div',
        {},
        h('h3', {}, title),
        rows.length === 0
          ? h('p', { class: 'note' }, none)
          : h(
              'table',
              {},
              h('tbody', {}, ...rows.slice(0, 40).map((row) => link(run, row.span, row.why))),
            ),
      );
    return [
      h(
        'div',
        {},
        h('h3', {}, opLabel(run, span)),
        h(
          'table',
          { class: 'facts' },
          h(
            'tbody',
            {},
            ...describe(run, span).map(([name, value]) =>
              h('tr', {}, h('th', { scope: 'row' }, name), h('td', {}, value)),
            ),
          ),
        ),
      ),
      list('It waited for', waited, 'nothing: it could begin at once'),
      list(
        'What waits for it',
        waiters,
        run.knowsWaits ? 'nothing does' : 'a timeline file does not say',
      ),
    ];
  };

  const range = () => {
    const [from, to] = state.selection ?? [Math.max(state.from, 0), Math.min(state.to, state.end)];
    const pick = h(
      'select',
      {
        'aria-label': 'Rows of the table',
        change: () => {
          pivot = pick.value;
          draw();
        },
      },
      ...['name', 'axis', 'layer', 'phase', 'rank'].map((one) =>
        h('option', { selected: one === pivot }, one),
      ),
    );
    const tables = state.page.runs.map((run) => {
      const ranks = shownRanks(timeline, run);
      const key = (span: number) =>
        pivot === 'name'
          ? run.nameOf(span)
          : pivot === 'axis'
            ? run.classOf(span).name
            : pivot === 'layer'
              ? run.layerOf(span) < 0
                ? 'outside the layers'
                : `layer ${run.layerOf(span)}`
              : pivot === 'phase'
                ? kPhases[run.ops.phase[run.op[span]]]
                : `rank ${run.shownOf(span).rank}`;
      const rows = groups(run, ranks, from, to, key);
      const length = Math.max(to - from, 1e-9) * Math.max(ranks.length, 1);
      const isOneColor = pivot === 'name' || pivot === 'axis';
      const sums = ranks.map((shown) => viewOf(run, shown).shares(from, Math.min(to, run.step)));
      const mean = (part: keyof Shares) =>
        sums.reduce((sum, one) => sum + one[part], 0) / Math.max(sums.length, 1);
      const columns: Column<Group>[] = [
        {
          name: pivot,
          text: (row) =>
            h('span', {}, isOneColor ? swatch(run.classes[row.cls].fill) : null, row.name),
          value: (row) => row.name,
        },
        { name: 'spans', text: (row) => whole(row.spans), value: (row) => row.spans },
        {
          name: 'time',
          title: 'sum over the ranks that are shown',
          text: (row) => time(row.took),
          value: (row) => row.took,
        },
        {
          name: 'of the range',
          text: (row) => percent(row.took / length),
          value: (row) => row.took / length,
        },
        {
          name: 'exposed',
          text: (row) => (row.exposed > 0 ? time(row.exposed) : ''),
          value: (row) => row.exposed,
        },
        {
          name: 'waited',
          text: (row) => (row.waited > 0 ? time(row.waited) : ''),
          value: (row) => row.waited,
        },
        {
          name: 'bytes',
          text: (row) => (row.bytes > 0 ? bytes(row.bytes) : ''),
          value: (row) => row.bytes,
        },
      ];
      return h(
        'div',
        { class: 'wide' },
        h(
          'h3',
          {},
          `${run.letter} ${state.selection ? 'Selected' : 'In view'}: ${time(to - from)}, ` +
          `${ranks.length} rank${ranks.length === 1 ? '' : 's'}`,
        ),
        h(
          'p',
          {},
          'Mean over ranks: compute ',
          h('b', {}, time(mean('compute'))),
          ', exposed ',
          h('b', {}, time(mean('exposed'))),
          ', waiting ',
          h('b', {}, time(mean('waiting'))),
          ', bubble ',
          h('b', {}, time(mean('bubble'))),
          '; hidden ',
          h('b', {}, time(mean('hidden'))),
        ),
        table(columns, rows, { sort: 2, label: 'Sums of the range' }),
      );
    });
    return [
      h(
        'div',
        { class: 'wide' },
        h(
          'p',
          { class: 'note' },
          'Rows by ',
          pick,
          state.selection ? '' : ' for what is in view; drag over the timeline to select a range',
        ),
        ...tables,
      ),
    ];
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
