// The network packet by packet: queues and pauses of its ports over time, and what held whom up.
import { loadColor, Sheet } from './canvas';
import type { HeldOp, Network, NetworkPort } from './data';
import { color, fitted } from './paint';
import { drawCursor, followCursor, isVisible, type Panel, runPicker } from './panel';
import type { State } from './state';
import { bytes, h, percent, rate, table, time, whole } from './text';

const kRow = 15;
const kLeft = 230;
const kNs = 1e9;

const kViews = ['queues', 'stood still', 'busy'] as const;
type View = (typeof kViews)[number];

// From 0 to 1, of one interval of a port.
function shareOf(view: View, network: Network, port: NetworkPort, i: number, longest: number): number {
  if (view === 'queues') return longest > 0 ? (port.queued_bytes_over_time[i] ?? 0) / longest : 0;
  const seconds = network.interval_seconds;
  if (view === 'stood still') return (port.stopped_seconds_over_time[i] ?? 0) / seconds;
  return (port.sent_bytes_over_time[i] ?? 0) / (port.bytes_per_second * seconds);
}

export function networkPanel(state: State): Panel | null {
  const runs = state.page.runs.filter((run) => run.network && run.network.shown.length > 0);
  if (runs.length === 0) return null;
  let run = runs[0];
  let view: View = 'queues';
  let chosen = 0;
  const side = h('div', { class: 'users' });
  const note = h('p', { class: 'legend' });
  const sheet = new Sheet('Ports of the network over time', (context, width, height) => {
    const network = run.network!;
    const { from, to } = state;
    const wide = Math.max(1, Math.floor(width - kLeft - 6));
    const longest = Math.max(...network.shown.map((port) => port.longest_queue_bytes));
    const step = network.interval_seconds * kNs;
    context.textBaseline = 'middle';
    network.shown.slice(0, Math.floor(height / kRow)).forEach((port, row) => {
      const y = row * kRow;
      context.fillStyle = color(row === chosen ? '--ink' : '--faint');
      context.font = `${row === chosen ? '600 ' : ''}11px system-ui, sans-serif`;
      context.textAlign = 'right';
      context.fillText(fitted(context, port.name, kLeft - 10), kLeft - 6, y + kRow / 2);
      for (let x = 0; x < wide; ++x) {
        // The fullest interval of each pixel.
        const first = Math.floor((from + (x / wide) * (to - from)) / step);
        const last = Math.floor((from + ((x + 1) / wide) * (to - from)) / step);
        let share = 0;
        for (let i = Math.max(first, 0); i <= last; ++i)
          share = Math.max(share, shareOf(view, network, port, i, longest));
        if (share <= 0) continue;
        context.fillStyle = loadColor(share);
        context.fillRect(kLeft + x, y, 1.2, kRow - 2);
      }
    });
    drawCursor(context, kLeft + ((state.cursor - from) / (to - from)) * wide, kLeft, width, height);
    const i = Math.floor(state.cursor / step);
    const port = network.shown[chosen];
    note.replaceChildren(
      h('span', {}, `${port.name} of ${rate(port.bytes_per_second)}`),
      h('span', {}, `at ${time(state.cursor)}: ${bytes(port.queued_bytes_over_time[i] ?? 0)} queued`),
      h('span', {}, `longest queue of all ${bytes(longest)}`),
      h('span', {}, `${whole(network.shown.length)} of ${whole(network.ports)} ports`),
    );
  });
  const heat = h('div', { class: 'heat' }, sheet.element);
  sheet.canvas.addEventListener('pointermove', (event) =>
    followCursor(state, event, sheet, kLeft, 6),
  );
  sheet.canvas.addEventListener('click', (event) => {
    const i = Math.floor((event.clientY - sheet.canvas.getBoundingClientRect().top) / kRow);
    if (i < 0 || i >= run.network!.shown.length) return;
    chosen = i;
    draw();
  });

  const heldTable = (title: string, held: HeldOp[]) =>
    held.length === 0
      ? []
      : [
          h('h4', {}, title),
          table<HeldOp>(
            [
              { name: 'op', text: (one) => one.op, value: (one) => one.op },
              { name: 'axis', text: (one) => one.kind, value: (one) => one.kind },
              {
                name: 'transfers',
                text: (one) => whole(one.transfers),
                value: (one) => one.transfers,
              },
              {
                name: 'up to',
                text: (one) => time(one.longest_seconds * kNs),
                value: (one) => one.longest_seconds,
              },
            ],
            held,
            { label: title, most: 8 },
          ),
        ];
  const drawSide = () => {
    const network = run.network!;
    const port = network.shown[chosen];
    const seconds = network.interval_seconds * port.queued_bytes_over_time.length;
    const own = network.trees.find((tree) => tree.root === port.name);
    side.replaceChildren(
      h('h3', {}, port.name),
      h(
        'p',
        { class: 'note' },
        [
          `longest queue ${bytes(port.longest_queue_bytes)}`,
          `${percent(port.sent_bytes / (port.bytes_per_second * seconds))} busy`,
          `stood still for ${time(port.stopped_seconds * kNs)}`,
          `${whole(port.marked)} packets marked`,
          `${whole(port.lost)} lost or trimmed`,
        ].join(', '),
      ),
      ...(own
        ? [
            h(
              'p',
              {},
              `Because of it ${whole(own.ports)} ports stood still, ${time(own.stopped_seconds * kNs)} in all` +
                (own.depth > 1 ? `, up to ${own.depth} cables away.` : '.'),
            ),
            ...heldTable('Held up on their way over it', own.held_on_their_way),
            ...heldTable('Victims, whose way does not lead over it', own.victims),
          ]
        : [h('p', {}, 'No port stood still because of it.')]),
    );
  };
  const draw = () => {
    if (!isVisible(element)) return;
    sheet.element.style.height = `${run.network!.shown.length * kRow}px`;
    sheet.draw();
    drawSide();
  };
  const pick = h(
    'select',
    {
      'aria-label': 'What is drawn',
      change: () => {
        view = kViews[pick.selectedIndex];
        draw();
      },
    },
    ...kViews.map((name) => h('option', {}, name)),
  );
  state.on('window cursor', () => {
    if (isVisible(element)) sheet.draw();
  });
  const element: HTMLElement = h(
    'div',
    { class: 'panel fill' },
    h(
      'div',
      { class: 'controls' },
      runPicker(state, (other) => {
        if (!other.network || other.network.shown.length === 0) return;
        run = other;
        chosen = 0;
        draw();
      }),
      h('label', {}, 'Ports: ', pick),
      note,
    ),
    h('div', { class: 'beside' }, heat, side),
  );
  return { id: 'network', name: 'Network', element, show: draw };
}
