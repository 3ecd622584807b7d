// Where the time goes, by rank, layer and axis.
import { groups, viewOf } from './analysis';
import { isVisible, type Panel, runPicker, shownRanks } from './panel';
import type { State } from './state';
import { h, s, time, whole } from './text';
import type { Timeline } from './timeline';

interface Bar {
  label: string;
  parts: number[];
  hidden: number;
}

export function breakdownPanel(state: State, timeline: Timeline): Panel {
  let run = state.page.runs[0];
  let by = 'rank';
  const body = h('div', {});
  const pick = h(
    'select',
    {
      'aria-label': 'By',
      change: () => {
        by = pick.value;
        draw();
      },
    },
    ...['rank', 'layer', 'axis'].map((one) => h('option', {}, one)),
  );
  const element = h(
    'div',
    { class: 'panel' },
    h(
      'p',
      { class: 'controls' },
      runPicker(state, (one) => {
        run = one;
        draw();
      }),
      h('label', {}, 'By ', pick),
    ),
    body,
  );
  const names = ['compute', 'exposed', 'waiting', 'bubble'];
  const inks = ['--compute', '--exposed', '--waiting', '--bubble'];

  const bars = (title: string, rows: Bar[], most: number, note: string, parts: number[]) => {
    const width = 640;
    const tall = 20;
    const left = 190;
    const svg = s('svg', {
      viewBox: `0 0 ${left + width + 280} ${rows.length * tall + 4}`,
      class: 'bars',
      role: 'img',
      'aria-label': title,
    });
    rows.forEach((row, i) => {
      const y = i * tall + 2;
      svg.append(
        s('text', { x: left - 8, y: y + 12, 'text-anchor': 'end', class: 'label' }, row.label),
      );
      let x = left;
      row.parts.forEach((part, j) => {
        const wide = (part / most) * width;
        if (wide > 0) {
          const rect = s('rect', {
            x,
            y,
            width: wide,
            height: tall - 5,
            class: `part-${names[parts[j]]}`,
          });
          rect.append(s('title', {}, `${row.label}: ${names[parts[j]]} ${time(part)}`));
          svg.append(rect);
        }
        x += wide;
      });
      if (row.hidden > 0) {
        const rect = s('rect', {
          x: left,
          y: y + tall - 5,
          width: (row.hidden / most) * width,
          height: 3,
          class: 'part-hidden',
        });
        rect.append(s('title', {}, `${row.label}: hidden communication ${time(row.hidden)}`));
        svg.append(rect);
      }
      const sum = row.parts[0];
      svg.append(
        s(
          'text',
          { x: x + 6, y: y + 12, class: 'value' },
          by === 'axis'
            ? `${time(row.parts[0])} exposed, ${time(row.hidden)} hidden`
            : `${time(sum)} ${names[parts[0]]}` +
                (row.parts[1] > 0 ? `, ${time(row.parts[1])} exposed` : ''),
        ),
      );
    });
    return h(
      'div',
      {},
      h('h3', {}, title),
      h(
        'p',
        { class: 'legend' },
        ...parts.map((part) =>
          h(
            'span',
            {},
            h('i', { class: 'swatch', style: `background:var(${inks[part]})` }),
            names[part],
          ),
        ),
        h(
          'span',
          {},
          h('i', { class: 'swatch', style: 'background:var(--hidden)' }),
          'hidden communication',
        ),
        note,
      ),
      svg,
    );
  };

  const draw = () => {
    if (!isVisible(element)) return;
    const ranks = run.shown;
    if (by === 'rank') {
      const rows = ranks.slice(0, 64).map((shown) => {
        const shares = viewOf(run, shown).shares();
        const stage = run.roles.length > 1 ? `${run.roles[shown.role].name}, ` : '';
        return {
          label: `${stage}rank ${shown.rank}` +
            (shown.standsFor > 1 ? ` \u00d7${whole(shown.standsFor)}` : ''),
          parts: [shares.compute, shares.exposed, shares.waiting, shares.bubble],
          hidden: shares.hidden,
        };
      });
      body.replaceChildren(
        bars(
          `A step of ${time(run.step)} on each kind of rank`,
          rows,
          run.step,
          ranks.length > 64 ? `the first 64 of ${ranks.length}` : '',
          [0, 1, 2, 3],
        ),
      );
      return;
    }
    const used = shownRanks(timeline, run).length ? shownRanks(timeline, run) : ranks.slice(0, 4);
    const weight = 1 / used.length;
    if (by === 'layer') {
      const found = groups(
        run,
        used,
        0,
        run.step,
        (span) => `${run.layerOf(span)} ${run.communicates(span)}`,
      );
      const layers = new Map<number, Bar>();
      for (const group of found) {
        const [layer, communicates] = group.name.split(' ');
        const number = Number(layer);
        let bar = layers.get(number);
        if (!bar)
          layers.set(
            number,
            (bar = {
              label: number < 0 ? 'outside the layers' : `layer ${number}`,
              parts: [0, 0],
              hidden: 0,
            }),
          );
        if (communicates === 'true') {
          bar.parts[1] += group.exposed * weight;
          bar.hidden += (group.took - group.exposed) * weight;
        } else bar.parts[0] += group.took * weight;
      }
      const rows = [...layers].sort((a, b) => a[0] - b[0]).map(([, bar]) => bar);
      body.replaceChildren(
        bars(
          'By layer, mean over ranks',
          rows,
          Math.max(...rows.map((row) => row.parts[0] + row.parts[1])),
          'of the ranks that are shown',
          [0, 1],
        ),
      );
      return;
    }
    const found = groups(run, used, 0, run.step, (span) =>
      run.communicates(span) ? run.classOf(span).name : '',
    );
    const rows = found
      .filter((group) => group.name !== '')
      .sort((a, b) => b.took - a.took)
      .map((group) => ({
        label: group.name,
        parts: [group.exposed * weight],
        hidden: (group.took - group.exposed) * weight,
      }));
    body.replaceChildren(
      bars(
        'By axis, mean over ranks',
        rows,
        Math.max(...rows.map((row) => Math.max(row.parts[0], row.hidden)), 1e-9),
        'of the ranks that are shown',
        [1],
      ),
    );
  };
  state.on('ranks', draw);
  return { id: 'breakdown', name: 'Breakdown', element, show: draw };
}
