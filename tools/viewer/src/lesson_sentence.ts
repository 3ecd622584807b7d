// A sentence whose numbers are dragged.
import type { Model, Values, Variable } from './lesson_models';
import { h } from './text';

export class Sentence {
  readonly element: HTMLElement;
  readonly values: Values = {};
  private readonly numbers = new Map<string, HTMLElement>();

  constructor(
    private readonly model: Model,
    private readonly moved: (variable: Variable) => void,
  ) {
    const parts = model.sentence.split(/\{(\w+)\}/).map((part, i) => {
      const variable = model.variables.find((one) => one.name === part);
      return i % 2 === 1 && variable ? this.numberOf(variable) : part;
    });
    this.element = h('p', { class: 'sentence' }, ...parts);
    this.reset(false);
  }

  // As the lesson has it, before or after its change.
  reset(isChanged: boolean): void {
    for (const one of this.model.variables)
      this.values[one.name] = isChanged ? (one.changed ?? one.now) : one.now;
    this.tell();
  }
  isAsItWas(isChanged: boolean): boolean {
    return this.model.variables.every(
      (one) => this.values[one.name] === (isChanged ? (one.changed ?? one.now) : one.now),
    );
  }

  private tell(): void {
    for (const one of this.model.variables) {
      const number = this.numbers.get(one.name);
      if (!number) continue;
      const value = this.values[one.name];
      number.textContent = one.text(value);
      number.setAttribute('aria-valuenow', String(value));
      number.setAttribute('aria-valuetext', one.text(value));
    }
  }

  private move(variable: Variable, at: number): void {
    const { values } = variable;
    const value = values[Math.max(0, Math.min(at, values.length - 1))];
    if (value === this.values[variable.name]) return;
    this.values[variable.name] = value;
    this.tell();
    this.moved(variable);
  }

  private numberOf(variable: Variable): HTMLElement {
    const { values } = variable;
    const place = () => {
      const at = values.findIndex((one) => one >= this.values[variable.name]);
      return at < 0 ? values.length - 1 : at;
    };
    let drag: { x: number; at: number } | null = null;
    const kPixels = 14; // from one value to the next
    const number = h('span', {
      class: 'dragged',
      role: 'slider',
      tabindex: 0,
      title: `Drag, or use the arrow keys: ${variable.label}`,
      'aria-label': variable.label,
      'aria-valuemin': values[0],
      'aria-valuemax': values[values.length - 1],
      pointerdown: (event: PointerEvent) => {
        drag = { x: event.clientX, at: place() };
        number.setPointerCapture(event.pointerId);
        number.focus();
        event.preventDefault();
      },
      pointermove: (event: PointerEvent) => {
        if (drag) this.move(variable, drag.at + Math.round((event.clientX - drag.x) / kPixels));
      },
      pointerup: () => {
        drag = null;
      },
      keydown: (event: KeyboardEvent) => {
        const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
        if (by) this.move(variable, place() + by);
        else if (event.key === 'Home') this.move(variable, 0);
        else if (event.key === 'End') this.move(variable, values.length - 1);
        else return;
        event.preventDefault();
        event.stopPropagation();
      },
    });
    this.numbers.set(variable.name, number);
    return number;
  }
}
