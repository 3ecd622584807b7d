// What all views share: the window of time, the cursor, what is chosen.
import type { Page, Run } from './data';

export interface Chosen {
  run: Run;
  span: number;
}

type Listener = () => void;

export class State {
  from = 0; // the window, ns
  to: number;
  readonly end: number; // of the longest step
  cursor = 0;
  selection: [number, number] | null = null;
  chosen: Chosen | null = null;
  link: { run: Run; link: number } | null = null;
  showExposed = true;
  showPath = false;
  search = '';
  asPipelines: boolean; // a row for each rank of a pipeline, and nothing else
  playedTo: number | null = null; // of the second step only this much is drawn, ns
  showMessages = true; // between the stages of a pipeline
  private readonly listeners = new Map<string, Listener[]>();

  constructor(readonly page: Page) {
    const kRoom = 1.7; // for guesses
    const longest = Math.max(...page.runs.map((run) => run.step), page.guess ?? 0, 1);
    this.end = page.onGuess ? Math.max(longest, page.runs[0].step * kRoom) : longest;
    this.to = this.end;
    this.asPipelines = page.asPipelines && this.havePipelines;
  }

  get havePipelines(): boolean {
    return this.page.runs.length > 0 && this.page.runs.every((run) => run.pipeline);
  }

  on(events: string, listener: Listener): void {
    for (const event of events.split(' ')) {
      const known = this.listeners.get(event);
      if (known) known.push(listener);
      else this.listeners.set(event, [listener]);
    }
  }
  tell(event: string): void {
    for (const listener of this.listeners.get(event) ?? []) listener();
  }

  show(from: number, to: number): void {
    const shortest = this.end / 1e9;
    let length = Math.min(Math.max(to - from, shortest, 1e-3), this.end * 1.05);
    let begin = (from + to) / 2 - length / 2;
    const margin = length * 0.03;
    begin = Math.max(Math.min(begin, this.end + margin - length), -margin);
    if (length > this.end) {
      begin = -0.01 * this.end;
      length = this.end * 1.02;
    }
    this.from = begin;
    this.to = begin + length;
    this.tell('window');
  }
  showAll(): void {
    this.show(-0.01 * this.end, 1.01 * this.end);
  }
  zoom(factor: number, at: number): void {
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }
  pan(share: number): void {
    const move = (this.to - this.from) * share;
    this.show(this.from + move, this.to + move);
  }
  moveCursor(at: number): void {
    this.cursor = Math.max(0, Math.min(at, this.end));
    this.tell('cursor');
  }
  choose(chosen: Chosen | null, follow = false): void {
    this.chosen = chosen;
    if (chosen) {
      const { run, span } = chosen;
      if (follow) {
        const middle = (run.begin[span] + run.end[span]) / 2;
        const length = Math.max(run.end[span] - run.begin[span], this.end / 1e8);
        if (middle < this.from || middle > this.to || length * 40 < this.to - this.from)
          this.show(middle - length * 8, middle + length * 8);
        this.moveCursor(middle);
      }
    }
    this.tell('chosen');
  }
  select(range: [number, number] | null): void {
    this.selection = range;
    this.tell('selection');
  }
}
