// Pipelines as papers draw them: a row for each rank, micro-batches numbered, the bubble hatched.
import { kWorks, type Page, type Piece } from './data';
import { color, hatch } from './paint';
import { kGutter, type Row } from './rows';
import type { Scale } from './lane_paint';
import { h, percent } from './text';

// By work; of the first copy of the model, and of the one that begins at the other end. Pictures
// have the same (scenarios/reporting/pipelines_picture.cc).
const kColors = [
  ['#2f7fd1', '#1d4289', '#2f9e63', '#1d4289'],
  ['#e08a1e', '#8f3d0f', '#a89a1c', '#8f3d0f'],
];

// Later chunks are paler.
function fillOf(piece: Piece): string {
  const full = kColors[piece.fromEnd ? 1 : 0][piece.work];
  const share = Math.max(0.3, 1 - 0.35 * piece.chunk);
  const pale = [1, 3, 5].map((at) =>
    Math.round(255 - (255 - parseInt(full.slice(at, at + 2), 16)) * share),
  );
  return `rgb(${pale.join(', ')})`;
}
const isDark = (piece: Piece) => piece.work === 1 || piece.work === 3;
const inkOf = (piece: Piece) =>
  piece.chunk === 0 || (isDark(piece) && piece.chunk === 1) ? '#ffffff' : '#16202b';

export function drawPipe(
  context: CanvasRenderingContext2D,
  scale: Scale,
  row: Row,
  y: number,
): void {
  const pipe = row.pipe!;
  const { from, to } = scale.state;
  const tall = row.height - 3;
  const clamp = (at: number) => Math.min(Math.max(scale.x(at), kGutter), scale.width);
  context.fillStyle = color('--track');
  context.fillRect(clamp(pipe.from), y, clamp(pipe.to) - clamp(pipe.from), tall);
  context.fillStyle = hatch(context, '--bubble-hatch');
  context.fillRect(clamp(pipe.from), y, clamp(pipe.to) - clamp(pipe.from), tall);
  context.font = `600 ${tall > 16 ? 12 : 11}px system-ui, sans-serif`;
  context.textBaseline = 'middle';
  context.textAlign = 'center';
  for (const piece of pipe.pieces) {
    if (piece.end < from || piece.begin > to) continue;
    const left = clamp(piece.begin);
    const right = clamp(piece.end);
    context.fillStyle = fillOf(piece);
    context.fillRect(left, y, Math.max(right - left - (right - left > 4 ? 0.8 : 0), 0.7), tall);
    const text = String(piece.microBatch + 1);
    if (right - left < context.measureText(text).width + 3) continue;
    context.fillStyle = inkOf(piece);
    context.fillText(text, (left + right) / 2, y + tall / 2 + 0.5);
  }
  context.textAlign = 'left';
}

// What lies at a time of a row, in words; a bubble where nothing does.
export function tellPipe(row: Row, at: number): string {
  const piece = row.pipe!.pieces.find((one) => one.begin <= at && at < one.end);
  if (!piece) return at >= row.pipe!.from && at < row.pipe!.to ? 'bubble' : '';
  return (
    `${kWorks[piece.work]} of micro-batch ${piece.microBatch + 1}` +
    (piece.chunk > 0 ? `, chunk ${piece.chunk + 1}` : '') +
    (piece.fromEnd ? ', from the other end' : '')
  );
}

export function pipelineLegend(page: Page): HTMLElement {
  const found = new Map<string, { fill: string; name: string }>();
  let hasChunks = false;
  for (const run of page.runs)
    for (const row of run.pipeline?.rows ?? [])
      for (const piece of row.pieces) {
        if (piece.chunk > 0) hasChunks = true;
        const key = `${Number(piece.fromEnd)} ${piece.chunk} ${piece.work}`;
        if (!found.has(key))
          found.set(key, {
            fill: fillOf(piece),
            name:
              kWorks[piece.work] +
              (piece.fromEnd ? ' from the other end' : `\u0000${piece.chunk + 1}`),
          });
      }
  const bubbles = page.runs
    .filter((run) => run.pipeline)
    .map((run) => `${run.letter ? `${run.letter} ` : ''}${percent(run.pipeline!.bubble)}`);
  return h(
    'div',
    { class: 'legend' },
    ...[...found]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, { fill, name }]) =>
        h(
          'span',
          {},
          h('i', { class: 'swatch', style: `background:${fill}` }),
          name.replace(/\u0000(\d+)/, hasChunks ? ', chunk $1' : ''),
        ),
      ),
    h('span', {}, h('i', { class: 'swatch bubbly' }), `bubble (${bubbles.join(', ')})`),
  );
}
