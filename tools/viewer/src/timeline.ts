// The timeline: a canvas of rows (rank by stream) that is redrawn on every change, however many
// spans there are, since those too small to see were merged before (Lane.level).
import { type Lane, upper, viewOf } from './analysis';
import type { Run } from './data';
import { describe } from './describe';
import { drawBlocks, drawLane, drawStrip } from './lane_paint';
import { arrow, color, fitted, forgetHatches } from './paint';
import { drawPipe, tellPipe } from './pipelines';
import {
  firstRanks,
  haveMessages,
  kAxis,
  kGutter,
  layOutRows,
  type RankChoice,
  type Row,
} from './rows';
import type { State } from './state';
import { h, time, whole } from './text';

const kGuess = 26; // height of the bar that is dragged to where the changed step ends

export class Timeline {
  readonly element: HTMLElement;
  readonly canvas: HTMLCanvasElement;
  private readonly scroller: HTMLElement;
  private readonly spacer: HTMLElement;
  private readonly tip: HTMLElement;
  private rows: Row[] = [];
  private rankChoices: RankChoice[];
  width = 800;
  private height = 300;
  private ratio = 1; // of pixels of the canvas
  private isPrinted = false;
  private asked = false;
  private matches: { lane: Lane; spans: Uint32Array }[] = [];
  private matched: { run: Run; span: number }[] = [];
  private matchAt = -1;
  private dragFrom: { x: number; from: number; to: number; pans: boolean } | null = null;
  private dragsGuess = false;
  lastFrame = 0; // ms
  readonly hasMessages: boolean = false;

  constructor(
    readonly state: State,
    private readonly tell: (text: string) => void,
  ) {
    const each = state.page.runs.length > 1 ? 4 : 8;
    this.rankChoices = state.page.runs.flatMap((run) => {
      const ranks = firstRanks(run, run.roles.length > 1 ? 16 : each);
      // Machines are compared at a glance: the first stage of a pipeline and the last.
      return state.page.machines && ranks.length > 2 ? [ranks[0], ranks[ranks.length - 1]] : ranks;
    });
    this.hasMessages = haveMessages(this.rankChoices);
    this.canvas = h('canvas', { tabindex: 0, role: 'img', 'aria-label': 'Timeline of the step' });
    this.spacer = h('div', { class: 'spacer' });
    this.scroller = h('div', { class: 'rows' }, this.canvas, this.spacer);
    this.tip = h('div', { class: 'tip', hidden: true });
    this.element = h(
      'section',
      { class: 'timeline', 'aria-label': 'Timeline' },
      this.scroller,
      this.tip,
    );
    if (this.hasMessages) {
      // Most of the time nothing travels: where there is no room for them, messages are left out.
      state.showMessages = true;
      this.layOut();
      state.showMessages = this.wantedHeight < window.innerHeight * 0.55;
    }
    this.layOut();
    // Two pipelines whose stages do not all fit begin with a row for each rank.
    if (state.page.runs.length > 1 && state.havePipelines && this.wantedHeight > window.innerHeight * 0.62) {
      state.asPipelines = true;
      this.layOut();
    }
    state.on('window cursor chosen selection options', () => this.draw());
    state.on('rows', () => {
      this.layOut();
      this.find(this.state.search);
      this.draw();
    });
    this.scroller.addEventListener('scroll', () => this.draw());
    new ResizeObserver(() => this.resize()).observe(this.scroller);
    this.listen();
  }

  get ranks(): RankChoice[] {
    return this.rankChoices;
  }
  setRanks(choices: RankChoice[]): void {
    this.rankChoices = choices;
    this.layOut();
    this.find(this.state.search);
    this.state.tell('ranks');
    this.draw();
  }
  addRank(run: Run, rank: number): string {
    const shown = run.shownFor(rank);
    if (!shown)
      return (
        `there is no rank ${rank} to show: 0 to ${run.rankCount - 1}` +
        (run.leftOut ? `, ${whole(run.leftOut)} of them left out of the file` : '')
      );
    if (!this.rankChoices.some((one) => one.run === run && one.rank === rank)) {
      const at = this.rankChoices.map((one) => one.run).lastIndexOf(run) + 1;
      this.setRanks([
        ...this.rankChoices.slice(0, at),
        { run, shown, rank, alike: rank === shown.rank ? shown.standsFor : 1 },
        ...this.rankChoices.slice(at),
      ]);
    }
    this.scrollTo(run, rank);
    return rank === shown.rank
      ? `rank ${rank} is shown`
      : `rank ${rank} does what rank ${shown.rank} does, whose spans these are`;
  }

  private layOut(): void {
    const { rows, height } = layOutRows(this.state.page.runs, this.rankChoices, this.state);
    this.rows = rows;
    this.spacer.style.height = `${height + kAxis + 8}px`;
  }

  get wantedHeight(): number {
    const last = this.rows[this.rows.length - 1];
    const { guess, onGuess } = this.state.page;
    const room = onGuess || guess !== undefined ? kGuess : 0;
    return (last ? last.y + last.height : 0) + kAxis + 14 + room;
  }

  private scrollTo(run: Run, rank: number): void {
    const choice = this.rankChoices.find((one) => one.run === run && one.rank === rank);
    if (!choice) return;
    const view = viewOf(run, choice.shown);
    const row = this.rows.find((one) => one.view === view);
    if (!row) return;
    const top = this.scroller.scrollTop;
    if (row.y < top || row.y + 60 > top + this.height - kAxis)
      this.scroller.scrollTop = Math.max(row.y - 30, 0);
  }

  // Brings a chosen span's row into view; its rank is added where it is not shown.
  reveal(run: Run, span: number): void {
    const shown = run.shownOf(span);
    if (!this.rankChoices.some((one) => one.run === run && one.shown === shown))
      this.addRank(run, shown.rank);
    this.scrollTo(
      run,
      this.rankChoices.find((one) => one.run === run && one.shown === shown)!.rank,
    );
  }

  // On paper all rows are drawn, at the width of the screen; the page's style scales them.
  print(on: boolean): void {
    this.isPrinted = on;
    if (!on) {
      this.resize();
      return;
    }
    this.scroller.scrollTop = 0;
    this.height = this.wantedHeight;
    this.setSize(2);
    this.drawNow();
  }

  // All rows as an image, for what is put on paper elsewhere.
  picture(width: number): { url: string; width: number; height: number } {
    this.isPrinted = true;
    this.width = width;
    this.height = this.wantedHeight;
    this.setSize(2);
    this.drawNow();
    return { url: this.canvas.toDataURL(), width, height: this.height };
  }

  private setSize(ratio: number): void {
    this.ratio = ratio;
    this.canvas.width = Math.max(1, Math.round(this.width * ratio));
    this.canvas.height = Math.max(1, Math.round(this.height * ratio));
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    forgetHatches();
  }

  private resize(): void {
    if (this.isPrinted) return;
    const ratio = (window.devicePixelRatio || 1) * Math.max(this.zoom, 1);
    this.width = this.scroller.clientWidth;
    this.height = this.scroller.clientHeight;
    this.setSize(ratio);
    // it is behind the canvas, which stays in view
    this.spacer.style.marginTop = `${-this.height}px`;
    this.drawNow();
  }

  // Of a style that shows the page larger, as a lecture's does.
  private get zoom(): number {
    return (this.canvas as HTMLElement & { currentCSSZoom?: number }).currentCSSZoom || 1;
  }

  restyle(): void {
    forgetHatches();
    this.draw();
  }

  draw(): void {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.drawNow();
    });
  }

  x(at: number): number {
    return (
      kGutter +
      ((at - this.state.from) / (this.state.to - this.state.from)) * (this.width - kGutter)
    );
  }
  private timeAt(x: number): number {
    return (
      this.state.from + ((x - kGutter) / (this.width - kGutter)) * (this.state.to - this.state.from)
    );
  }

  drawNow(): void {
    const begin = performance.now();
    const context = this.canvas.getContext('2d')!;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.fillStyle = color('--back');
    context.fillRect(0, 0, this.width, this.height);
    const top = this.scroller.scrollTop;
    context.save();
    context.beginPath();
    context.rect(0, kAxis, this.width, this.height - kAxis);
    context.clip();
    this.drawGrid(context);
    for (const row of this.rows) {
      const y = row.y - top + kAxis;
      if (y > this.height || y + row.height < kAxis) continue;
      this.drawRow(context, row, y);
    }
    this.drawSearch(context, top);
    if (this.state.showPath) this.drawPath(context, top);
    this.drawChosen(context, top);
    context.restore();
    this.drawAxis(context);
    this.lastFrame = performance.now() - begin;
  }

  private drawRow(context: CanvasRenderingContext2D, row: Row, y: number): void {
    if (row.kind === 'run') {
      if (!row.label) return;
      context.fillStyle = color('--band');
      context.fillRect(0, y, this.width, row.height - 3);
      context.fillStyle = color('--ink');
      context.font = '600 13px system-ui, sans-serif';
      context.textBaseline = 'middle';
      context.fillText(
        fitted(context, row.label, this.width - 20),
        10,
        y + row.height / 2 - 1,
      );
      return;
    }
    if (row.kind === 'gap') return;
    if (row.kind === 'lane' || row.kind === 'blocks') {
      context.fillStyle = color('--track');
      context.fillRect(kGutter, y, this.x(row.run.step) - kGutter, row.height - 2);
    }
    if (row.kind === 'lane') drawLane(context, this, row, y);
    else if (row.kind === 'blocks') drawBlocks(context, this, row, y);
    else if (row.kind === 'pipe') drawPipe(context, this, row, y);
    else drawStrip(context, this, row, y);
    const { playedTo } = this.state;
    if (playedTo !== null && row.run !== this.state.page.runs[0]) {
      const x = Math.max(this.x(playedTo), kGutter);
      context.fillStyle = color('--back');
      context.fillRect(x, y - 1, this.width - x, row.height + 1);
    }
    context.fillStyle = color('--back');
    context.fillRect(0, y - 1, kGutter - 1, row.height + 1);
    context.textBaseline = 'middle';
    if (row.rankLabel) {
      context.fillStyle = color('--ink');
      context.font = '600 12px system-ui, sans-serif';
      context.fillText(fitted(context, row.rankLabel, 150), 8, y + row.height / 2 - 1);
    }
    if (row.label && row.height > 11) {
      context.fillStyle = color('--faint');
      context.font = '11px system-ui, sans-serif';
      context.textAlign = 'right';
      context.fillText(
        fitted(context, row.label, row.rankLabel ? 82 : 200),
        kGutter - 8,
        y + row.height / 2 - 1,
      );
      context.textAlign = 'left';
    }
  }

  private drawSearch(context: CanvasRenderingContext2D, top: number): void {
    if (!this.state.search) return;
    const { from, to } = this.state;
    for (const { lane, spans } of this.matches) {
      const row = this.rows.find((one) => one.lane === lane);
      if (!row) continue;
      const y = row.y - top + kAxis;
      if (y > this.height || y + row.height < kAxis) continue;
      const { run } = lane;
      let low = 0;
      let high = spans.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (run.end[spans[middle]] < from) low = middle + 1;
        else high = middle;
      }
      let drawn = -1;
      for (let i = low; i < spans.length && run.begin[spans[i]] < to; ++i) {
        const left = Math.max(this.x(run.begin[spans[i]]), kGutter);
        const right = Math.max(Math.min(this.x(run.end[spans[i]]), this.width), left + 1);
        if (right < drawn + 0.5) continue;
        drawn = right;
        context.fillStyle = run.classOf(spans[i]).fill;
        context.fillRect(left, y, right - left, row.height - 2);
      }
    }
  }

  private rowOf(run: Run, span: number): Row | undefined {
    const shown = run.shownOf(span);
    return this.rows.find(
      (row) =>
        row.lane &&
        row.run === run &&
        row.view!.shown === shown &&
        row.lane.name === run.roles[shown.role].streams[run.ops.stream[run.op[span]]].name &&
        has(row.lane, span),
    );
  }

  private drawPath(context: CanvasRenderingContext2D, top: number): void {
    const { from, to } = this.state;
    for (const run of this.state.page.runs) {
      const { path } = run;
      if (path.begin.length === 0) continue;
      let last: { x: number; y: number; row: Row } | null = null;
      const back = new Path2D();
      const front = new Path2D();
      let drawn = -10;
      for (
        let i = Math.max(upper(path.begin, from) - 1, 0);
        i < path.begin.length && path.begin[i] < to;
        ++i
      ) {
        const left = this.x(path.begin[i]);
        const right = this.x(path.end[i]);
        if (right < drawn + 0.4) continue;
        drawn = right;
        const span = path.span[i];
        const row = span >= 0 ? this.rowOf(run, span) : undefined;
        if (!row) {
          last = null;
          continue;
        }
        const y = row.y - top + kAxis + row.height - 4;
        // From stream to stream only where that can be told apart, from rank to rank always.
        const joins = last !== null && (last.row.view !== row.view || right - left > 5);
        for (const line of [back, front]) {
          if (last && joins) {
            line.moveTo(last.x, last.y);
            line.lineTo(left, y);
          } else line.moveTo(left, y);
          line.lineTo(Math.max(right, left + 0.5), y);
        }
        last = { x: right, y, row };
      }
      context.lineJoin = 'round';
      context.strokeStyle = color('--back');
      context.lineWidth = 4;
      context.stroke(back);
      context.strokeStyle = color('--path');
      context.lineWidth = 2;
      context.stroke(front);
    }
  }

  private drawChosen(context: CanvasRenderingContext2D, top: number): void {
    const { chosen } = this.state;
    if (!chosen) return;
    const { run, span } = chosen;
    const row = this.rowOf(run, span);
    if (!row) return;
    const y = row.y - top + kAxis;
    const left = this.x(run.begin[span]);
    const right = Math.max(this.x(run.end[span]), left + 2);
    if (run.ready[span] < run.begin[span]) {
      const ready = this.x(run.ready[span]);
      context.setLineDash([3, 3]);
      context.strokeStyle = color('--ink');
      context.lineWidth = 1.5;
      context.strokeRect(ready, y + 2, left - ready, row.height - 6);
      context.setLineDash([]);
    }
    context.strokeStyle = color('--ink');
    context.lineWidth = 2;
    context.strokeRect(left - 1, y - 1, right - left + 2, row.height);
    const middle = (one: Row) => one.y - top + kAxis + (one.height - 2) / 2;
    for (const other of run.waitedFor(span).slice(0, 6)) {
      const from = this.rowOf(run, other.span);
      if (from)
        arrow(
          context,
          this.x(run.end[other.span]),
          middle(from),
          left,
          middle(row),
          color('--arrow-in'),
          false,
        );
    }
    for (const other of run.waitsFor(span).slice(0, 8)) {
      const to = this.rowOf(run, other.span);
      if (to)
        arrow(
          context,
          right,
          middle(row),
          this.x(run.begin[other.span]),
          middle(to),
          color('--arrow-out'),
          true,
        );
    }
  }

  private ticks(): { step: number; first: number } {
    const wanted = (this.state.to - this.state.from) / Math.max((this.width - kGutter) / 110, 2);
    const power = 10 ** Math.floor(Math.log10(wanted));
    const step = [1, 2, 5, 10].map((f) => f * power).find((v) => v >= wanted) ?? wanted;
    return { step, first: Math.ceil(Math.max(this.state.from, 0) / step) * step };
  }

  private drawGrid(context: CanvasRenderingContext2D): void {
    const { step, first } = this.ticks();
    context.fillStyle = color('--grid');
    for (let at = first; at < this.state.to && at <= this.state.end * 1.01; at += step)
      context.fillRect(Math.round(this.x(at)), kAxis, 1, this.height);
  }

  private drawAxis(context: CanvasRenderingContext2D): void {
    context.fillStyle = color('--band');
    context.fillRect(0, 0, this.width, kAxis - 2);
    const { step, first } = this.ticks();
    context.fillStyle = color('--ink');
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    const unit = step >= 1e9 ? 1e9 : step >= 1e6 ? 1e6 : step >= 1e3 ? 1e3 : 1;
    const name = unit === 1e9 ? 's' : unit === 1e6 ? 'ms' : unit === 1e3 ? 'us' : 'ns';
    const decimals = Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9));
    for (let at = first; at < this.state.to && at <= this.state.end * 1.01; at += step) {
      const x = Math.round(this.x(at));
      context.fillRect(x, kAxis - 8, 1, 6);
      context.fillText(`${(at / unit).toFixed(decimals)} ${name}`, x + 3, kAxis / 2 - 2);
    }
    const { selection, cursor } = this.state;
    if (selection) {
      const left = Math.max(this.x(selection[0]), kGutter);
      const right = Math.min(this.x(selection[1]), this.width);
      if (right > left) {
        context.fillStyle = color('--selected');
        context.fillRect(left, 0, right - left, this.height);
        context.fillStyle = color('--ink');
        context.font = '600 11px system-ui, sans-serif';
        context.textAlign = 'center';
        context.fillText(time(selection[1] - selection[0]), (left + right) / 2, this.height - 10);
        context.textAlign = 'left';
      }
    }
    this.drawGuess(context);
    const x = this.x(cursor);
    if (x >= kGutter && x <= this.width && !this.isPrinted) {
      context.fillStyle = color('--cursor');
      context.fillRect(Math.round(x), 0, 1, this.height);
      const text = time(cursor);
      context.font = '600 11px system-ui, sans-serif';
      const wide = context.measureText(text).width + 8;
      const at = Math.min(x + 1, this.width - wide);
      context.fillRect(at, 0, wide, 15);
      context.fillStyle = color('--back');
      context.fillText(text, at + 4, 8);
    }
    context.fillStyle = color('--band');
    context.fillRect(0, 0, kGutter - 1, kAxis - 2);
    context.fillStyle = color('--faint');
    context.font = '11px system-ui, sans-serif';
    context.fillText(`${time(this.state.to - this.state.from)} in view`, 8, kAxis / 2 - 1);
  }

  // Where the step will end: a bar to drag, as long as nobody has seen it.
  private get guessed(): number | undefined {
    const { page } = this.state;
    return page.guess ?? (page.onGuess ? page.runs[0].step : undefined);
  }
  private drawGuess(context: CanvasRenderingContext2D): void {
    const at = this.guessed;
    if (at === undefined || this.isPrinted) return;
    const { guess, onGuess } = this.state.page;
    const x = Math.round(this.x(at));
    const left = this.x(0);
    const y = this.height - kGuess - 2;
    context.fillStyle = color('--back');
    context.fillRect(0, y - 2, this.width, kGuess + 4);
    context.globalAlpha = 0.25;
    context.fillStyle = color('--main');
    context.fillRect(left, y, x - left, kGuess - 4);
    context.globalAlpha = 1;
    context.strokeStyle = color('--main');
    context.lineWidth = 1.5;
    context.setLineDash([5, 4]);
    context.strokeRect(left, y, x - left, kGuess - 4);
    context.setLineDash([]);
    context.fillStyle = color('--main');
    if (guess !== undefined) for (let dash = kAxis; dash < y; dash += 9) context.fillRect(x - 1, dash, 2, 6);
    context.fillRect(x - 3, y - 1, 6, kGuess - 2);
    context.textBaseline = 'middle';
    context.font = '600 12px system-ui, sans-serif';
    const text = guess !== undefined ? `guess: ${time(guess)}` : '\u2194 drag: where will it end?';
    const wide = context.measureText(text).width + 8;
    const place = x + wide + 6 < this.width ? x + 6 : x - wide - 6;
    context.fillStyle = color('--ink');
    context.fillText(text, place + 4, y + kGuess / 2 - 2);
    context.font = '600 12px system-ui, sans-serif';
    if (onGuess || guess !== undefined) context.fillText('My guess', 8, y + kGuess / 2 - 2);
  }
  private isAtGuess(x: number, y: number): boolean {
    const at = this.guessed;
    return (
      !!this.state.page.onGuess && at !== undefined && y > this.height - kGuess - 6 &&
      Math.abs(x - this.x(at)) < 14
    );
  }

  private rowAt(y: number): Row | undefined {
    const at = y - kAxis + this.scroller.scrollTop;
    return y < kAxis ? undefined : this.rows.find((row) => at >= row.y && at < row.y + row.height);
  }

  // The span under a point of the canvas; null where there is none.
  spanAt(x: number, y: number): { run: Run; span: number; merged: number } | null {
    const row = this.rowAt(y);
    if (!row?.lane || x < kGutter) return null;
    const pixel = (this.state.to - this.state.from) / (this.width - kGutter);
    const at = this.timeAt(x);
    const i = row.lane.at(at, 3 * pixel);
    if (i < 0) return null;
    const merged = upper(row.lane.begin, at + pixel) - upper(row.lane.begin, at - pixel);
    return { run: row.run, span: row.lane.spans[i], merged };
  }
  // Where a span is drawn, to point at it.
  placeOf(run: Run, span: number): { x: number; y: number } | null {
    const row = this.rowOf(run, span);
    if (!row) return null;
    return {
      x: this.x((run.begin[span] + run.end[span]) / 2),
      y: row.y - this.scroller.scrollTop + kAxis + row.height / 2 - 1,
    };
  }

  private listen(): void {
    const { canvas, state } = this;
    const point = (event: MouseEvent) => {
      const box = canvas.getBoundingClientRect();
      const { zoom } = this;
      return { x: (event.clientX - box.left) / zoom, y: (event.clientY - box.top) / zoom };
    };
    canvas.addEventListener('pointerdown', (event) => {
      const { x } = point(event);
      if (event.button !== 0 || x < kGutter) return;
      if (this.isAtGuess(x, point(event).y)) {
        this.dragsGuess = true;
        canvas.setPointerCapture(event.pointerId);
        return;
      }
      canvas.setPointerCapture(event.pointerId);
      this.dragFrom = { x, from: state.from, to: state.to, pans: event.shiftKey };
      this.tip.hidden = true;
    });
    canvas.addEventListener('pointermove', (event) => {
      const { x, y } = point(event);
      if (this.dragsGuess) {
        const at = Math.max(this.state.end / 1000, Math.min(this.timeAt(x), this.state.end));
        this.state.page.guess = at;
        this.state.page.onGuess?.(at);
        this.draw();
        return;
      }
      canvas.style.cursor = this.isAtGuess(x, y) ? 'ew-resize' : '';
      const drag = this.dragFrom;
      if (drag && Math.abs(x - drag.x) > 3) {
        if (drag.pans) {
          const move = ((drag.x - x) / (this.width - kGutter)) * (drag.to - drag.from);
          state.show(drag.from + move, drag.to + move);
        } else {
          const ends = [this.timeAt(drag.x), this.timeAt(Math.max(x, kGutter))].sort(
            (a, b) => a - b,
          );
          state.select([Math.max(ends[0], 0), Math.min(ends[1], state.end)]);
        }
      }
      if (x >= kGutter) state.moveCursor(this.timeAt(x));
      if (!drag) this.hover(x, y);
    });
    canvas.addEventListener('pointerup', (event) => {
      const { x, y } = point(event);
      if (this.dragsGuess) {
        this.dragsGuess = false;
        return;
      }
      const drag = this.dragFrom;
      this.dragFrom = null;
      if (!drag || Math.abs(x - drag.x) > 3) {
        state.tell('selected');
        return;
      }
      const found = this.spanAt(x, y);
      if (!found && state.selection) state.select(null);
      state.choose(found && { run: found.run, span: found.span });
    });
    canvas.addEventListener('pointerleave', () => {
      this.tip.hidden = true;
    });
    canvas.addEventListener('dblclick', (event) => {
      const { x, y } = point(event);
      const found = this.spanAt(x, y);
      if (!found) return;
      const { run, span } = found;
      const length = Math.max(run.end[span] - run.begin[span], state.end / 1e8);
      state.show(run.begin[span] - length, run.end[span] + length);
    });
    canvas.addEventListener(
      'wheel',
      (event) => {
        const { x } = point(event);
        const across = Math.abs(event.deltaX) > Math.abs(event.deltaY);
        if (event.shiftKey || across) {
          event.preventDefault();
          state.pan((across ? event.deltaX : event.deltaY) / this.width);
        } else if (event.ctrlKey || event.metaKey || this.wantedHeight <= this.height + 4) {
          event.preventDefault();
          state.zoom(1.0018 ** event.deltaY, this.timeAt(Math.max(x, kGutter)));
        }
      },
      { passive: false },
    );
  }

  private hover(x: number, y: number): void {
    const found = this.spanAt(x, y);
    const row = this.rowAt(y);
    const told = row?.pipe && x >= kGutter ? tellPipe(row, this.timeAt(x)) : '';
    if (!found && !told) {
      this.tip.hidden = true;
      return;
    }
    if (found) {
      const { run, span, merged } = found;
      const rows: [string, string][] = describe(run, span);
      this.tip.replaceChildren(
        h('b', {}, run.nameOf(span)),
        ...rows.map(([name, value]) => h('div', {}, h('span', {}, name), value)),
        merged > 2 ? h('i', {}, `one of ${whole(merged)} here; zoom in`) : '',
      );
    } else this.tip.replaceChildren(h('b', {}, told));
    this.tip.hidden = false;
    const wide = this.tip.offsetWidth;
    const tall = this.tip.offsetHeight;
    this.tip.style.left = `${x + 16 + wide > this.width ? Math.max(x - wide - 12, 0) : x + 16}px`;
    this.tip.style.top = `${Math.max(0, Math.min(y + 14, this.element.clientHeight - tall - 4))}px`;
  }

  // Finds ops whose name, axis or layer fits. Returns how many spans do.
  find(text: string): number {
    this.state.search = text.trim();
    this.matches = [];
    this.matched = [];
    this.matchAt = -1;
    const words = this.state.search
      .toLowerCase()
      .split(/\s+/)
      .filter((word) => word);
    if (words.length > 0) {
      const fits = new Map<Run, Uint8Array>();
      for (const run of this.state.page.runs) {
        const { ops } = run;
        fits.set(
          run,
          Uint8Array.from(ops.name, (name, i) => {
            const layer = ops.layer[i] >= 0 ? `layer ${ops.layer[i]} l${ops.layer[i]}` : '';
            const hay =
              ['', name, ops.kind[i], run.classes[ops.cls[i]].name, layer, ops.detail[i]]
                .join(' ')
                .toLowerCase();
            return Number(words.every((word) => hay.includes(word)));
          }),
        );
      }
      for (const row of this.rows) {
        if (!row.lane) continue;
        const fit = fits.get(row.run)!;
        const spans = row.lane.spans.filter((span) => fit[row.run.op[span]] === 1);
        if (spans.length === 0) continue;
        this.matches.push({ lane: row.lane, spans });
        for (const span of spans) this.matched.push({ run: row.run, span });
      }
      this.matched.sort((a, b) => a.run.begin[a.span] - b.run.begin[b.span]);
    }
    this.draw();
    return this.matched.length;
  }
  nextMatch(by: number): void {
    if (this.matched.length === 0) {
      this.tell(
        this.state.search
          ? `nothing is called "${this.state.search}" in the rows that are shown`
          : '',
      );
      return;
    }
    this.matchAt = (this.matchAt + by + this.matched.length) % this.matched.length;
    const { run, span } = this.matched[this.matchAt];
    this.tell(`${whole(this.matchAt + 1)} of ${whole(this.matched.length)}`);
    this.reveal(run, span);
    this.state.choose({ run, span }, true);
  }

  // The span before or after the chosen one in its lane.
  step(by: number): void {
    const { chosen } = this.state;
    if (!chosen) return;
    const row = this.rowOf(chosen.run, chosen.span);
    if (!row) return;
    const at = row.lane!.spans.indexOf(chosen.span) + by;
    if (at >= 0 && at < row.lane!.spans.length)
      this.state.choose({ run: chosen.run, span: row.lane!.spans[at] }, true);
  }
}

function has(lane: Lane, span: number): boolean {
  const at = lane.run.begin[span];
  for (let i = upper(lane.begin, at) - 1; i >= 0 && lane.begin[i] === at; --i)
    if (lane.spans[i] === span) return true;
  return false;
}
