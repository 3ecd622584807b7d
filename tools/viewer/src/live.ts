// What can be changed in a page that simulates: sliders, switches, choices, the scenario's text.
// scenarios/reporting/live.h says what is asked, live_controls.h which controls there are.
import { type Page, readPage } from './data';
import { unpackedOf } from './decode';
import { Simulator } from './simulator';
import { h, percent, time } from './text';
import { showPage, type View } from './view';

interface Control {
  kind: 'factor' | 'compute' | 'fail' | 'switch' | 'choice' | 'grid' | 'edits' | 'amount';
  label: string;
  what: 'bandwidth' | 'latency';
  links: string[];
  now: string;
  path: string;
  paths: string[];
  values: (string | number[])[];
  value: unknown;
}

export interface LiveScenario {
  step: Record<string, unknown> & { name: string; text: string };
  controls: Control[];
  native_seconds?: number; // what playing it took the program
}

type Expose = (parts: Record<string, unknown>) => void;
interface Turned {
  changes: () => string[];
  edits: () => Record<string, unknown>[];
  reset: () => void;
}

const kNoChanges = () => [] as string[];
const kNoEdits = () => [] as Record<string, unknown>[];

// 1/10 to 10, in steps of the same factor.
function factorSlider(
  label: string,
  now: string,
  changed: () => void,
  times = (factor: number) => `\u00d7 ${factor}`,
): { element: HTMLElement; factor: () => number; reset: () => void } {
  const slider = h('input', {
    type: 'range',
    min: -20,
    max: 20,
    step: 1,
    value: 0,
    'aria-label': label,
  });
  const told = h('output', {});
  const factor = () => Number((10 ** (Number(slider.value) / 20)).toPrecision(3));
  const tell = () => {
    told.textContent = factor() === 1 ? now || 'as it is' : times(factor());
  };
  slider.addEventListener('input', () => {
    tell();
    changed();
  });
  tell();
  return {
    element: h('label', { class: 'turn' }, h('span', {}, label), told, slider),
    factor,
    reset: () => {
      slider.value = '0';
      tell();
    },
  };
}

export class LivePanel {
  readonly element = h('div', { class: 'live-panel' });
  private readonly simulator: Simulator;
  readonly message = h('p', { class: 'mistake', role: 'alert', hidden: true });
  readonly told = h('p', { class: 'note', role: 'status' });
  private scenario: LiveScenario | null = null;
  private first: Page | null = null; // the step as it was
  private view: View | null = null;
  private turned: Turned[] = [];
  private text = h('textarea', {});
  private played = 0;
  private more: string[] = []; // changes made elsewhere
  private base: string[] = []; // likewise, of both steps
  guess: number | undefined; // when the changed step ends, ns
  onGuess: ((at: number) => void) | undefined; // while nobody has seen it
  inColumn = false; // what is told stands elsewhere, and all rows are shown
  private prepared: (() => Page) | null = null; // the step with these changes, if it is known

  constructor(
    private readonly root: HTMLElement,
    packed: string,
    private readonly expose: Expose,
  ) {
    this.simulator = new Simulator(packed);
  }

  // A scenario to play with, and the step as it is.
  take(scenario: LiveScenario, first: Page): void {
    this.scenario = scenario;
    this.first = first;
    this.more = [];
    this.base = [];
    this.prepared = null;
    this.view?.close();
    this.view = null;
    this.message.hidden = true;
    this.turned = [];
    const groups = scenario.controls
      .filter((one) => one.kind !== 'edits')
      .map((one) => this.controlOf(one));
    const reset = h('button', { class: 'reset', click: () => this.reset() }, 'As it was');
    this.element.replaceChildren(
      ...(this.inColumn ? [] : [this.message, this.told]),
      ...groups,
      this.textBox(scenario),
      h('p', {}, reset),
    );
    this.show(first, 0);
    void this.warmUp();
  }

  private get known(): string | undefined {
    return this.first?.runs[0]?.result?.timeline_hash;
  }

  // A browser compiles what runs often: the first change that somebody makes need not wait for it.
  private async warmUp(): Promise<void> {
    const { scenario } = this;
    const { known } = this;
    if (scenario!.native_seconds) return; // nobody would be glad of four of these
    const request = JSON.stringify({
      ...scenario!.step,
      known,
      changes: ['description=warming up'],
    });
    for (let i = 0; i < 4 && this.scenario === scenario && this.played === 0; ++i)
      await this.simulator.warmUp(request).catch(() => {});
  }

  // Changes besides those of the controls; `prepared` is the step with these alone.
  change(changes: string[], prepared: (() => Page) | null, base: string[] = []): void {
    this.more = changes;
    this.base = base;
    this.prepared = prepared;
    void this.play();
  }

  private controlOf(control: Control): HTMLElement {
    const again = () => void this.play();
    const { label } = control;
    if (control.kind === 'factor' || control.kind === 'compute') {
      const slider = factorSlider(label, control.now, again);
      const edit = (): Record<string, unknown>[] => {
        const factor = `${slider.factor()}x`;
        if (slider.factor() === 1) return [];
        if (control.kind === 'compute') return [{ devices: '**', compute: factor }];
        return control.links.map((links) => ({ links, [control.what]: factor }));
      };
      this.turned.push({ changes: kNoChanges, edits: edit, reset: slider.reset });
      return slider.element;
    }
    if (control.kind === 'amount') {
      const [, number, unit] = /^\s*([\d.]+)\s*(\S+)\s*$/.exec(String(control.value)) ?? [];
      const times = (factor: number) => `${Number((Number(number) * factor).toPrecision(4))}${unit}`;
      const slider = factorSlider(label, String(control.value), again, times);
      this.turned.push({
        edits: kNoEdits,
        reset: slider.reset,
        changes: () =>
          slider.factor() === 1
            ? []
            : control.paths.map((path) => `${path}=${times(slider.factor())}`),
      });
      return slider.element;
    }
    if (control.kind === 'switch') {
      const box = h('input', { type: 'checkbox', change: again });
      const reset = () => {
        box.checked = control.value === true;
      };
      reset();
      this.turned.push({
        edits: kNoEdits,
        reset,
        changes: () => (box.checked === control.value ? [] : [`${control.path}=${box.checked}`]),
      });
      return h('label', { class: 'turn switch' }, box, h('span', {}, label));
    }
    const texts =
      control.kind === 'fail'
        ? ['none', ...control.links]
        : control.values.map((value) => (Array.isArray(value) ? value.join(' \u00d7 ') : value));
    const select = h(
      'select',
      { 'aria-label': label, change: again },
      ...texts.map((text) => h('option', {}, text)),
    );
    const was =
      control.kind === 'fail'
        ? 0
        : Math.max(
            control.values.findIndex((value) => String(value) === String(control.value)),
            0,
          );
    select.selectedIndex = was;
    const changes = (): string[] => {
      const at = select.selectedIndex;
      if (at === was) return [];
      if (control.kind === 'choice') return [`${control.path}=${control.values[at] as string}`];
      if (control.kind === 'grid')
        return control.paths.map((path, i) => `${path}=${(control.values[at] as number[])[i]}`);
      const third = Math.round((this.first?.runs[0]?.step ?? 0) / 3);
      const event = { at: `${third}ns`, links: texts[at], fail: true };
      return [`simulator.perturbation=${JSON.stringify({ events: [event] })}`];
    };
    this.turned.push({
      edits: kNoEdits,
      changes,
      reset: () => {
        select.selectedIndex = was;
      },
    });
    const name =
      control.kind === 'grid'
        ? `${label}: ${control.paths.map((path) => path.split('.').pop()).join(' \u00d7 ')}`
        : label;
    return h('label', { class: 'turn' }, h('span', {}, name), select);
  }

  private textBox(scenario: LiveScenario): HTMLElement {
    let later = 0;
    this.text = h('textarea', {
      spellcheck: 'false',
      rows: 16,
      'aria-label': 'The scenario as JSON',
      input: () => {
        clearTimeout(later);
        later = window.setTimeout(() => void this.play(), 250);
      },
    });
    this.text.value = scenario.step.text;
    this.turned.push({
      changes: kNoChanges,
      edits: kNoEdits,
      reset: () => {
        this.text.value = scenario.step.text;
      },
    });
    return h('details', { class: 'json' }, h('summary', {}, 'The scenario as JSON'), this.text);
  }

  reset(): void {
    for (const one of this.turned) one.reset();
    void this.play();
  }

  private changes(): string[] {
    const changes = this.turned.flatMap((one) => one.changes());
    const edits = this.turned.flatMap((one) => one.edits());
    if (edits.length > 0) {
      const before = this.scenario!.controls.find((one) => one.kind === 'edits')?.value as
        unknown[] | undefined;
      changes.push(`edits=${JSON.stringify([...(before ?? []), ...edits])}`);
    }
    return changes;
  }

  private async play(): Promise<void> {
    const { scenario, first } = this;
    if (!scenario || !first) return;
    const own = this.changes();
    const edited = this.text.value === scenario.step.text ? undefined : this.text.value;
    if (own.length === 0 && edited === undefined && (this.more.length === 0 || this.prepared)) {
      ++this.played; // an answer on its way is no longer wanted
      this.message.hidden = true;
      this.show(this.more.length > 0 ? this.prepared!() : first, 0);
      return;
    }
    const number = ++this.played;
    const begin = performance.now();
    const changes = [...this.more, ...own];
    const request = {
      ...scenario.step,
      ...(this.base.length > 0
        ? { set: [...((scenario.step['set'] as string[] | undefined) ?? []), ...this.base] }
        : { known: this.known }),
      changes,
      edited,
    };
    try {
      const { bytes, took } = await this.simulator.play(JSON.stringify(request));
      if (number !== this.played) return;
      const kMessage = 1;
      if (bytes[0] === kMessage) {
        const said = JSON.parse(new TextDecoder().decode(bytes.subarray(1))) as {
          message: string;
          is_fault: boolean;
        };
        this.tellMistake(
          said.is_fault ? `A fault of the simulator: ${said.message}` : said.message,
        );
        return;
      }
      this.message.hidden = true;
      this.show(readPage(unpackedOf(bytes.subarray(1)), first.runs[0]), took, begin);
    } catch (error) {
      if (number === this.played)
        this.tellMistake(error instanceof Error ? error.message : String(error));
    }
  }

  // The step of the scenario with these changes, ns; null if something else is asked, or it fails.
  async stepOf(changes: string[]): Promise<number | null> {
    const { scenario, first } = this;
    const request = { ...scenario!.step, changes, known: this.known };
    const played = await this.simulator.playIfIdle(JSON.stringify(request)).catch(() => null);
    if (!played || played.bytes[0] !== 0) return null;
    return readPage(unpackedOf(played.bytes.subarray(1)), first!.runs[0]).runs.at(-1)!.step;
  }

  // The line of the text with the mistake, to go to.
  private tellMistake(message: string): void {
    const name = this.scenario!.step.name;
    const line = message.startsWith(`${name}:`)
      ? parseInt(message.slice(name.length + 1), 10)
      : NaN;
    this.message.replaceChildren(message);
    this.message.hidden = false;
    if (line > 0) {
      const lines = this.text.value.split('\n');
      const begin = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
      this.message.append(
        h('code', {}, (lines[line - 1] ?? '').trim()),
        h(
          'button',
          {
            click: () => {
              (this.text.parentElement as HTMLDetailsElement).open = true;
              this.text.focus();
              this.text.setSelectionRange(begin, begin + (lines[line - 1] ?? '').length);
            },
          },
          `Line ${line}`,
        ),
      );
    }
    this.tellParts({ mistake: message });
  }

  private show(page: Page, took: number, begin = performance.now()): void {
    this.prepare(page);
    const isNew = !this.view;
    const cursor = this.view?.state?.cursor ?? 0;
    this.view = showPage(page, this.root, this.view);
    const [a, b] = page.runs;
    // Something is on the links then, in most lessons.
    this.view.state?.moveCursor(isNew ? 0.4 * a.step : cursor);
    const total = performance.now() - begin;
    const share = b ? b.step / a.step - 1 : 0;
    const slow = this.scenario?.native_seconds ?? 0;
    this.told.textContent = !b
      ? `One step takes ${time(a.step)}.` +
        (slow > 0
          ? ` The program took ${slow} s to play it: a change takes this page several times as ` +
            'long, or more memory than it has. Fewer layers, ranks or micro-batches make it quick.'
          : '')
      : `${time(b.step)} instead of ${time(a.step)}: ${share > 0 ? '+' : ''}${percent(share)}.` +
        (took > 0 ? ` Simulated here in ${took.toFixed(took < 10 ? 1 : 0)} ms.` : '');
    this.tellParts({ took, total });
  }

  // Lays the page out once more, where there is more or less room, or another guess.
  showAgain(): void {
    const page = this.view?.state?.page;
    if (!page) return;
    this.prepare(page);
    const cursor = this.view!.state!.cursor;
    this.view = showPage(page, this.root, this.view);
    this.view.state?.moveCursor(cursor);
    this.tellParts({});
  }

  private prepare(page: Page): void {
    page.guess = this.guess;
    page.onGuess = page.runs.length < 2 ? this.onGuess : undefined;
    page.inColumn = this.inColumn;
  }

  private tellParts(live: Record<string, unknown>): void {
    this.expose({ ...this.view?.parts, live: { ...live, played: this.played, panel: this } });
  }
}
