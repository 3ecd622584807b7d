// Memory by kind over time.
import { upper } from './analysis';
import { Sheet } from './canvas';
import type { Run } from './data';
import { color } from './paint';
import { drawCursor, followCursor, type Panel, swatch } from './panel';
import type { State } from './state';
import { bytes, h, time } from './text';

export function memoryPanel(state: State): Panel | null {
  if (state.page.runs.every((run) => run.memory.length === 0)) return null;
  const curves = state.page.runs.flatMap((run) => run.memory.map((curve) => ({ run, curve })));
  let at = 0;
  // The fullest first.
  curves.forEach((one, i) => {
    if (peak(one.curve).total > peak(curves[at].curve).total) at = i;
  });
  const pick = h(
    'select',
    {
      'aria-label': 'Rank',
      change: () => {
        at = pick.selectedIndex;
        draw();
      },
    },
    ...curves.map(({ run, curve }, i) =>
      h('option', { selected: i === at }, `${run.letter} rank ${curve.rank}`),
    ),
  );
  const kinds = ['parameters', 'gradients', 'optimizer', 'activations', 'buffers'] as const;
  // none of them used for a kind of op
  const inks = ['#46586a', '#77899b', '#a9b6c2', '#4f9d5d', '#b9cf6c'];
  const line = h('p', { class: 'legend' });
  const sheet = new Sheet('Memory over time', (context, width, height) => {
    const { run, curve } = curves[at];
    const left = 70;
    const { from, to } = state;
    const x = (ns: number) => left + ((ns - from) / (to - from)) * (width - left - 8);
    const capacity = run.result?.memory_capacity_bytes ?? memoryCapacity(run);
    const most = Math.max(peak(curve).total, capacity) * 1.06;
    const y = (value: number) => 8 + (height - 30) * (1 - value / most);
    const fixed = [curve.parameters, curve.gradients, curve.optimizer];
    let below = 0;
    const end = Math.min(x(run.step), width - 8);
    const start = Math.max(x(0), left);
    fixed.forEach((value, i) => {
      context.fillStyle = inks[i];
      context.fillRect(
        start,
        y(below + value),
        Math.max(end - start, 0),
        y(below) - y(below + value),
      );
      below += value;
    });
    const pixels = Math.max(1, Math.floor(width - left - 8));
    // The fullest moment of each pixel.
    let point = Math.max(upper(curve.at, from) - 1, 0);
    for (let i = 0; i < pixels; ++i) {
      const begin = from + (i / pixels) * (to - from);
      const after = from + ((i + 1) / pixels) * (to - from);
      if (after < 0 || begin > run.step) continue;
      let best = point;
      while (point + 1 < curve.at.length && curve.at[point + 1] <= after) {
        ++point;
        if (
          curve.activations[point] + curve.buffers[point] >
          curve.activations[best] + curve.buffers[best]
        )
          best = point;
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
      const value = ((most / 1.06) * i) / 4;
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
    const values = [
      ...fixed,
      now < 0 ? 0 : curve.activations[now],
      now < 0 ? 0 : curve.buffers[now],
    ];
    const top = peak(curve);
    line.replaceChildren(
      ...kinds.map((kind, i) => h('span', {}, swatch(inks[i]), `${kind} ${bytes(values[i])}`)),
      h(
        'span',
        {},
        `at ${time(state.cursor)}: ${bytes(values.reduce((sum, one) => sum + one, 0))}`,
      ),
      h(
        'button',
        { click: () => state.moveCursor(top.at) },
        `fullest: ${bytes(top.total)} at ${time(top.at)}`,
      ),
    );
  });
  const draw = () => sheet.draw();
  state.on('window cursor', draw);
  const element = h(
    'div',
    { class: 'panel fill' },
    h('div', { class: 'controls' }, h('label', {}, 'Memory of ', pick), line),
    sheet.element,
  );
  sheet.canvas.addEventListener('pointermove', (event) => followCursor(state, event, sheet, 70, 8));
  return { id: 'memory', name: 'Memory', element, show: draw };
}

function memoryCapacity(run: Run): number {
  const memory = run.result?.memory;
  return memory?.['capacity'] ?? 0;
}

function peak(curve: {
  at: Float64Array;
  activations: Float64Array;
  buffers: Float64Array;
  parameters: number;
  gradients: number;
  optimizer: number;
}): { at: number; total: number } {
  let best = 0;
  for (let i = 1; i < curve.at.length; ++i)
    if (curve.activations[i] + curve.buffers[i] > curve.activations[best] + curve.buffers[best])
      best = i;
  return {
    at: curve.at[best] ?? 0,
    total:
      curve.parameters +
      curve.gradients +
      curve.optimizer +
      (curve.activations[best] ?? 0) +
      (curve.buffers[best] ?? 0),
  };
}
