// "How to read this": a walk through the data of this page.
import { viewOf } from './analysis';
import type { State } from './state';
import { bytes, h, percent, time, whole } from './text';
import type { Timeline } from './timeline';

interface Stop {
  title: string;
  text: string;
  act: () => void;
  panel: string;
}

export function makeTour(
  state: State,
  timeline: Timeline,
  open: (panel: string) => void,
): { element: HTMLElement; start: () => void } {
  const run = state.page.runs[0];
  const element = h('div', {
    class: 'tour',
    hidden: true,
    role: 'dialog',
    'aria-label': 'How to read this',
  });
  let at = 0;

  const stops = (): Stop[] => {
    const shown = timeline.ranks.find((one) => one.run === run)?.shown ?? run.shown[0];
    const view = viewOf(run, shown);
    const shares = view.shares();
    const exposed = view.exposedOfSpans();
    let most = -1;
    let hidden = -1;
    for (let i = shown.first; i < shown.end; ++i) {
      if (!run.communicates(i)) continue;
      if (most < 0 || exposed[i - shown.first] > exposed[most - shown.first]) most = i;
      const took = (span: number) => run.end[span] - run.begin[span] - exposed[span - shown.first];
      if (hidden < 0 || took(i) > took(hidden)) hidden = i;
    }
    const look = (span: number) => () => {
      timeline.reveal(run, span);
      state.choose({ run, span }, true);
    };
    const list: Stop[] = [
      {
        title: 'One step',
        panel: 'breakdown',
        act: () => {
          state.choose(null);
          state.showAll();
        },
        text:
          `The axis is one step of ${time(run.step)}. A row is a stream of a rank: compute ` +
          'first, then a row for each axis that it communicates on.' +
          (shown.standsFor > 1
            ? ` Rank ${shown.rank} stands for ${whole(shown.standsFor)} ranks that do the same.`
            : ''),
      },
      {
        title: 'Where the time goes',
        panel: 'breakdown',
        act: () => state.showAll(),
        text:
          `Rank ${shown.rank} computes for ${time(shares.compute)}. For ` +
          `${time(shares.exposed)} (${percent(shares.exposed / run.step)}) it only ` +
          `communicates: that is exposed. It waits for others for ${time(shares.waiting)}, and ` +
          `does nothing for ${time(shares.bubble)}. Another ${time(shares.hidden)} of ` +
          'communication is hidden behind compute.',
      },
    ];
    if (view.blocks.length > 0) {
      const block = view.blocks[Math.floor(view.blocks.length / 2)];
      list.push({
        title: 'Micro-batches',
        panel: 'breakdown',
        act: () => {
          state.choose(null);
          state.show(
            block.begin - 6 * (block.end - block.begin),
            block.end + 6 * (block.end - block.begin),
          );
        },
        text:
          'The numbered row shows which micro-batch a stage works on: light blue forward, dark ' +
          'blue backward. Gaps in it are the bubble.',
      });
    }
    if (most >= 0 && exposed[most - shown.first] > 0)
      list.push({
        title: 'Exposed communication',
        panel: 'selection',
        act: look(most),
        text:
          'What no kernel hides is hatched; the strip below a rank shows it at any zoom. This ' +
          `one, ${run.nameOf(most)}, is exposed for ${time(exposed[most - shown.first])}, ` +
          'longer than any other on this rank.',
      });
    if (hidden >= 0)
      list.push({
        title: 'Hidden communication',
        panel: 'selection',
        act: look(hidden),
        text:
          `This ${run.nameOf(hidden)} is the one with the longest part hidden behind compute. ` +
          'Arrows come from what it waited for, and lead to what waits for it.',
      });
    const held = most >= 0 ? run.bottleneckOf(most) : undefined;
    if (held)
      list.push({
        title: 'What holds it back',
        panel: 'cluster',
        act: () => {
          look(most)();
          state.link = { run, link: run.links.indexOf(held.link) };
          state.tell('link');
        },
        text:
          `${held.link.name} held that transfer back for ${percent(held.share)} of its time. ` +
          'The picture colours links by their load at the cursor; move it over the timeline.',
      });
    if (run.path.begin.length > 0)
      list.push({
        title: 'The critical path',
        panel: 'selection',
        act: () => {
          state.showPath = true;
          state.choose(null);
          state.showAll();
          state.tell('options');
        },
        text:
          'The line runs through what the step waited for, from its beginning to its end. Only ' +
          'a change to something on it can make the step shorter. C switches it on and off.',
      });
    if (run.memory.length > 0) {
      const curve = run.memory[0];
      list.push({
        title: 'Memory',
        panel: 'memory',
        act: () => state.showAll(),
        text:
          'Parameters, gradients and optimizer state ' +
          `(${bytes(curve.parameters + curve.gradients + curve.optimizer)} on rank ` +
          `${curve.rank}) stay; activations grow in the forward pass and are freed in the ` +
          'backward pass.',
      });
    }
    if (state.page.runs.length > 1)
      list.push({
        title: 'A above B',
        panel: 'compare',
        act: () => state.showAll(),
        text:
          `Both steps share one axis and one cursor: A ${time(state.page.runs[0].step)}, B ` +
          `${time(state.page.runs[1].step)}. The table says which ops and axes differ.`,
      });
    list.push({
      title: 'Now you',
      panel: 'selection',
      act: () => {},
      text:
        'W and S, or Ctrl and the wheel, zoom; A and D move. Drag to select a range; click an ' +
        'op; / searches; ? brings this back.',
    });
    return list;
  };

  const close = () => {
    element.hidden = true;
    timeline.canvas.focus();
  };
  const show = () => {
    const all = stops();
    at = Math.max(0, Math.min(at, all.length - 1));
    const stop = all[at];
    open(stop.panel);
    stop.act();
    const next = h(
      'button',
      {
        class: 'main',
        click: () => {
          if (at + 1 === all.length) close();
          else {
            ++at;
            show();
          }
        },
      },
      at + 1 === all.length ? 'Done' : 'Next',
    );
    element.replaceChildren(
      h('b', {}, `${at + 1} of ${all.length}: ${stop.title}`),
      h('p', {}, stop.text),
      h(
        'p',
        { class: 'buttons' },
        h(
          'button',
          {
            disabled: at === 0,
            click: () => {
              --at;
              show();
            },
          },
          'Back',
        ),
        next,
        h('button', { click: close }, 'Close'),
      ),
    );
    element.hidden = false;
    next.focus();
  };
  element.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') close();
    event.stopPropagation();
  });
  return {
    element,
    start: () => {
      at = 0;
      show();
    },
  };
}
