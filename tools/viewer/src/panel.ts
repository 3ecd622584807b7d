// What the views below the timeline have in common: they share its window, cursor and choice.
import { Sheet } from './canvas';
import type { Run, ShownRank } from './data';
import { color } from './paint';
import type { State } from './state';
import { h } from './text';
import type { Timeline } from './timeline';

export interface Panel {
  id: string;
  name: string;
  element: HTMLElement;
  show(): void; // it becomes visible: bring it up to date
}

export function swatch(fill: string): HTMLElement {
  return h('i', { class: 'swatch', style: `background:${fill}` });
}

export function opLabel(run: Run, span: number): HTMLElement {
  return h('span', {}, swatch(run.classOf(span).fill), run.nameOf(span));
}

export function runPicker(state: State, changed: (run: Run) => void): HTMLElement | null {
  if (state.page.runs.length < 2) return null;
  const pick = h(
    'select',
    { 'aria-label': 'Which step', change: () => changed(state.page.runs[pick.selectedIndex]) },
    ...state.page.runs.map((run) => h('option', {}, `${run.letter}  ${run.title}`)),
  );
  return h('label', {}, 'Step ', pick);
}

export function shownRanks(timeline: Timeline, run: Run): ShownRank[] {
  return [...new Set(timeline.ranks.filter((one) => one.run === run).map((one) => one.shown))];
}

export function isVisible(element: HTMLElement): boolean {
  return element.offsetParent !== null;
}

export function drawCursor(
  context: CanvasRenderingContext2D,
  x: number,
  left: number,
  width: number,
  height: number,
): void {
  if (x < left || x > width) return;
  context.fillStyle = color('--cursor');
  context.fillRect(Math.round(x), 0, 1, height);
}

export function followCursor(
  state: State,
  event: PointerEvent,
  sheet: Sheet,
  left: number,
  right: number,
): void {
  const box = sheet.canvas.getBoundingClientRect();
  const share = (event.clientX - box.left - left) / (sheet.width - left - right);
  if (share >= 0 && share <= 1) state.moveCursor(state.from + share * (state.to - state.from));
}
