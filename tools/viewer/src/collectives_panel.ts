// Transfers as a table.
import { viewOf } from './analysis';
import type { Run } from './data';
import { isVisible, opLabel, type Panel, shownRanks } from './panel';
import type { State } from './state';
import { bytes, type Column, h, rate, table, time, whole } from './text';
import type { Timeline } from './timeline';

export function collectivesPanel(state: State, timeline: Timeline): Panel {
  const body = h('div', {});
  let text = '';
  let exposedOnly = false;
  const filter = h('input', {
    type: 'search',
    placeholder: 'name, axis, layer 3, rank 0 \u2026',
    'aria-label': 'Filter',
    input: () => {
      text = filter.value.toLowerCase();
      draw();
    },
  });
  const only = h('input', {
    type: 'checkbox',
    change: () => {
      exposedOnly = only.checked;
      draw();
    },
  });
  const element = h(
    'div',
    { class: 'panel' },
    h(
      'p',
      { class: 'controls' },
      h('label', {}, 'Filter ', filter),
      h('label', {}, only, ' exposed only'),
      h('span', { class: 'note' }, 'of the ranks that are shown; a click zooms'),
    ),
    body,
  );
  interface Row {
    run: Run;
    span: number;
    exposed: number;
  }
  const draw = () => {
    if (!isVisible(element)) return;
    const words = text.split(/\s+/).filter((word) => word);
    const rows: Row[] = [];
    for (const run of state.page.runs) {
      const hay = run.ops.name.map(
        (name, i) =>
          [' ' + run.letter, name, run.ops.kind[i], run.classes[run.ops.cls[i]].name, '']
            .join(' ')
            .toLowerCase() +
          (run.ops.layer[i] >= 0 ? `layer ${run.ops.layer[i]} ` : ''),
      );
      for (const shown of shownRanks(timeline, run)) {
        const exposed = viewOf(run, shown).exposedOfSpans();
        for (let i = shown.first; i < shown.end; ++i) {
          if (!run.communicates(i) || run.end[i] === run.begin[i]) continue;
          const out = exposed[i - shown.first];
          if (exposedOnly && out <= 0) continue;
          if (
            words.length &&
            !words.every(
              (word) => hay[run.op[i]].includes(word) || `rank ${shown.rank} `.includes(`${word} `),
            )
          )
            continue;
          rows.push({ run, span: i, exposed: out });
        }
      }
    }
    const took = (row: Row) => row.run.end[row.span] - row.run.begin[row.span];
    const several = state.page.runs.length > 1;
    const columns: Column<Row>[] = [
      ...(several
        ? [
            {
              name: 'step',
              text: (row: Row) => row.run.letter,
              value: (row: Row) => row.run.letter,
            },
          ]
        : []),
      {
        name: 'name',
        text: (row) => opLabel(row.run, row.span),
        value: (row) => row.run.nameOf(row.span),
      },
      {
        name: 'axis',
        text: (row) => row.run.classOf(row.span).name,
        value: (row) => row.run.classOf(row.span).name,
      },
      {
        name: 'layer',
        text: (row) => (row.run.layerOf(row.span) < 0 ? '' : String(row.run.layerOf(row.span))),
        value: (row) => row.run.layerOf(row.span),
      },
      {
        name: 'rank',
        text: (row) => String(row.run.shownOf(row.span).rank),
        value: (row) => row.run.shownOf(row.span).rank,
      },
      {
        name: 'begins',
        text: (row) => time(row.run.begin[row.span]),
        value: (row) => row.run.begin[row.span],
      },
      { name: 'takes', text: (row) => time(took(row)), value: took },
      {
        name: 'exposed',
        text: (row) => (row.exposed > 0 ? time(row.exposed) : ''),
        value: (row) => row.exposed,
      },
      {
        name: 'waited',
        text: (row) =>
          row.run.begin[row.span] > row.run.ready[row.span]
            ? time(row.run.begin[row.span] - row.run.ready[row.span])
            : '',
        value: (row) => row.run.begin[row.span] - row.run.ready[row.span],
      },
      {
        name: 'bytes',
        text: (row) => (row.run.bytesOf(row.span) > 0 ? bytes(row.run.bytesOf(row.span)) : ''),
        value: (row) => row.run.bytesOf(row.span),
      },
      {
        name: 'busbw',
        text: (row) => (row.run.busbwOf(row.span) > 0 ? rate(row.run.busbwOf(row.span)) : ''),
        value: (row) => row.run.busbwOf(row.span),
      },
      {
        name: 'held back by',
        text: (row) => row.run.bottleneckOf(row.span)?.link.name ?? '',
        value: (row) => row.run.bottleneckOf(row.span)?.link.name ?? '',
      },
    ];
    body.replaceChildren(
      h('p', { class: 'note' }, `${whole(rows.length)} transfers`),
      table(columns, rows, {
        sort: columns.findIndex((column) => column.name === 'exposed'),
        label: 'Collectives',
        click: (row) => {
          timeline.reveal(row.run, row.span);
          state.choose({ run: row.run, span: row.span }, true);
        },
      }),
    );
  };
  state.on('ranks', draw);
  return { id: 'collectives', name: 'Collectives', element, show: draw };
}
