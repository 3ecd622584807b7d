// Draws a row of the timeline: a stream, micro-batches, or how much is exposed.
import { upper } from './analysis';
import { color, fitted, hatch } from './paint';
import { kGutter, type Row } from './rows';
import type { State } from './state';

// From times to the canvas.
export interface Scale {
  state: State;
  width: number;
  x(at: number): number;
}

const hatchedLabels: { text: string; x: number; y: number; ink: string; fill: string }[] = [];

export function drawLane(
  context: CanvasRenderingContext2D,
  scale: Scale,
  row: Row,
  y: number,
): void {
  const lane = row.lane!;
  const { run } = lane;
  const { from, to } = scale.state;
  const pixel = (to - from) / (scale.width - kGutter);
  const tall = row.height - 2;
  const level = lane.level(pixel);
  const begins = level ? level.begin : lane.begin;
  const ends = level ? level.end : lane.end;
  const faint = scale.state.search !== '';
  context.globalAlpha = faint ? 0.22 : 1;
  const hatched: [number, number][] = [];
  const exposed = row.view!.exposed;
  context.font = `${Math.min(tall - 4, 12)}px system-ui, sans-serif`;
  context.textBaseline = 'middle';
  for (let i = Math.max(upper(begins, from) - 1, 0); i < begins.length && begins[i] < to; ++i) {
    if (ends[i] < from) continue;
    const left = Math.max(scale.x(begins[i]), kGutter);
    const right = Math.min(scale.x(ends[i]), scale.width);
    const wide = right - left;
    const cls = run.classes[level ? level.cls[i] : run.ops.cls[run.op[lane.spans[i]]]];
    context.fillStyle = cls.fill;
    if (level && level.count[i] > 1 && level.busy[i] < 0.98) {
      // As high as it is busy.
      const high = Math.max(2, tall * level.busy[i]);
      context.fillRect(left, y + tall - high, Math.max(wide, 0.7), high);
      continue;
    }
    const gap = wide > 4 ? 0.6 : 0;
    context.fillRect(left, y, Math.max(wide - gap, 0.7), tall);
    if (wide < 3) continue;
    if (lane.communicates && scale.state.showExposed) {
      const first = exposed.from(begins[i]);
      for (let j = first; j < exposed.begin.length && exposed.begin[j] < ends[i]; ++j) {
        const a = Math.max(scale.x(Math.max(exposed.begin[j], begins[i])), left);
        const b = Math.min(scale.x(Math.min(exposed.end[j], ends[i])), right - gap);
        if (b - a > 1.5) hatched.push([a, b]);
        if (hatched.length > 4000) break;
      }
    }
    if (wide > 26 && tall > 11 && !(level && level.count[i] > 1)) {
      const span = lane.spans[level ? upper(lane.begin, begins[i]) - 1 : i];
      const text = fitted(context, run.nameOf(span), wide - 8);
      if (text.length > 1) {
        if (lane.communicates)
          hatchedLabels.push({
            text,
            x: left + 4,
            y: y + tall / 2 + 0.5,
            ink: cls.ink,
            fill: cls.fill,
          });
        else {
          context.fillStyle = cls.ink;
          context.fillText(text, left + 4, y + tall / 2 + 0.5);
        }
      }
    }
  }
  if (hatched.length > 0) {
    context.fillStyle = hatch(context);
    for (const [a, b] of hatched) context.fillRect(a, y, b - a, tall);
  }
  for (const label of hatchedLabels) {
    const wide = context.measureText(label.text).width;
    context.fillStyle = label.fill;
    context.fillRect(label.x - 2, label.y - 7, wide + 4, 14);
    context.fillStyle = label.ink;
    context.fillText(label.text, label.x, label.y);
  }
  hatchedLabels.length = 0;
  context.globalAlpha = 1;
}

export function drawBlocks(
  context: CanvasRenderingContext2D,
  scale: Scale,
  row: Row,
  y: number,
): void {
  const blocks = row.view!.blocks;
  const { from, to } = scale.state;
  const tall = row.height - 2;
  context.font = '11px system-ui, sans-serif';
  context.textBaseline = 'middle';
  context.textAlign = 'center';
  let drawn = -1;
  for (const block of blocks) {
    if (block.end < from || block.begin > to) continue;
    const left = Math.max(scale.x(block.begin), kGutter);
    const right = Math.min(scale.x(block.end), scale.width);
    if (right < drawn + 0.5) continue;
    drawn = right;
    const name = block.backward ? 'backward' : 'forward';
    const cls = row.run.classes.find((one) => one.name === name) ?? row.run.classes[0];
    context.fillStyle = cls.fill;
    context.fillRect(left, y, Math.max(right - left - 0.6, 0.7), tall);
    const text = String(block.microBatch + 1);
    if (right - left > context.measureText(text).width + 2) {
      context.fillStyle = cls.ink;
      context.fillText(text, (left + right) / 2, y + tall / 2 + 0.5);
    }
  }
  context.textAlign = 'left';
}

// How much of each pixel is exposed.
export function drawStrip(
  context: CanvasRenderingContext2D,
  scale: Scale,
  row: Row,
  y: number,
): void {
  if (!scale.state.showExposed) return;
  const exposed = row.view!.exposed;
  const { from, to } = scale.state;
  const wide = scale.width - kGutter;
  const pixel = (to - from) / wide;
  const last = Math.min(wide, scale.x(row.run.step) - kGutter);
  context.fillStyle = color('--exposed');
  let before = exposed.before(from);
  for (let i = 0; i < last; ++i) {
    const now = exposed.before(from + (i + 1) * pixel);
    const share = (now - before) / pixel;
    before = now;
    if (share < 0.01) continue;
    context.globalAlpha = 0.25 + 0.75 * Math.min(share, 1);
    context.fillRect(kGutter + i, y, 1, row.height - 3);
  }
  context.globalAlpha = 1;
}
