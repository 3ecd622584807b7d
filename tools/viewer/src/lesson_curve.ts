// A lesson's step against one of its numbers: as one works it out by hand, as it is simulated, and where
// the page is.
import { type Model, type Values, type Variable, withoutChange } from './lesson_models';
import { h, s, time } from './text';

const kWidth = 400;
const kHeight = 230;
const kLeft = 62;
const kBottom = 40;
const kTop = 14;
const kRight = 14;

export interface Point {
  at: number; // of the variable
  step: number; // ms
}

// A round number at least as large.
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((one) => one * power >= value) ?? 10) * power;
}

export class Curve {
  readonly element = h('figure', { class: 'curve' });

  // `now` is where the page is; its step is simulated.
  draw(
    model: Model,
    variable: Variable,
    values: Values,
    isChanged: boolean,
    points: Point[],
    now: Point | null,
  ): void {
    const { values: all } = variable;
    const isWide = all[all.length - 1] / all[0] > 40 && all[0] > 0;
    const scale = (value: number) => (isWide ? Math.log(value) : value);
    const [least, most] = [scale(all[0]), scale(all[all.length - 1])];
    const kParts = 60;
    const kFew = 5; // whole numbers, between which nothing is
    const parts = all.length <= kFew ? all : Array.from({ length: kParts + 1 }, (_, i) => {
      const part = least + ((most - least) * i) / kParts;
      return isWide ? Math.exp(part) : part;
    });
    const closedAt = (at: number, changed: boolean) =>
      model.closed({ ...values, [variable.name]: at }, changed) ?? NaN;
    const line = parts
      .map((at) => ({ at, step: closedAt(at, isChanged) }))
      .filter((one) => Number.isFinite(one.step));
    const byHand = model.closed(values, isChanged);
    const without = withoutChange(model, values);
    const before =
      isChanged && variable.changed === undefined
        ? parts.map((at) => ({
            at,
            step: model.closed({ ...without, [variable.name]: at }, false) ?? NaN,
          }))
        : [];
    const steps = [...line, ...before, ...points].map((one) => one.step).filter((one) => one > 0);
    const isTall = isWide && Math.max(...steps) / Math.min(...steps) > 20;
    const high = roundUp(
      Math.max(...steps, now?.step ?? 0, 1e-6),
    );
    const low = isTall ? 10 ** Math.floor(Math.log10(Math.min(...steps))) : 0;
    const x = (at: number) =>
      kLeft + ((scale(at) - least) / (most - least || 1)) * (kWidth - kLeft - kRight);
    const shareOf = (step: number) =>
      isTall ? Math.log(step / low) / Math.log(high / low) : step / high;
    const y = (step: number) => kHeight - kBottom - shareOf(step) * (kHeight - kBottom - kTop);
    const rules = isTall
      ? Array.from({ length: 7 }, (_, i) => low * 10 ** i).filter((one) => one <= high)
      : [0, 0.25, 0.5, 0.75, 1].map((share) => high * share);
    const svg = s('svg', {
      viewBox: `0 0 ${kWidth} ${kHeight}`,
      role: 'img',
      'aria-label': `The step against ${variable.label}`,
    });
    for (const step of rules) {
      const at = y(step);
      svg.append(
        s('line', { x1: kLeft, x2: kWidth - kRight, y1: at, y2: at, class: 'rule' }),
        s('text', { x: kLeft - 6, y: at + 4, 'text-anchor': 'end' }, time(step * 1e6)),
      );
    }
    let free = -Infinity;
    for (const value of all) {
      const text = variable.text(value);
      const wide = text.length * 7;
      if (x(value) - wide / 2 < free || x(value) + wide / 2 > kWidth) continue;
      free = x(value) + wide / 2 + 8;
      svg.append(
        s('text', { x: x(value), y: kHeight - kBottom + 16, 'text-anchor': 'middle' }, text),
      );
    }
    svg.append(
      s(
        'text',
        { x: (kLeft + kWidth - kRight) / 2, y: kHeight - 5, 'text-anchor': 'middle', class: 'axis' },
        variable.label,
      ),
    );
    for (const [of, name] of [[before, 'before'], [line, 'by-hand']] as const)
      if (of.length > 1) svg.append(
        s('path', {
          class: name,
          d: of.map((one, i) => `${i ? 'L' : 'M'}${x(one.at).toFixed(1)} ${y(one.step).toFixed(1)}`).join(''),
        }),
      );
    for (const one of points)
      svg.append(s('circle', { class: 'simulated', cx: x(one.at), cy: y(one.step), r: 3.5 }));
    if (now)
      svg.append(s('circle', { class: 'here', cx: x(now.at), cy: y(now.step), r: 7 }));
    this.element.replaceChildren(
      svg,
      h(
        'figcaption',
        {},
        h('span', {}, h('i', { class: 'swatch line' }), `by hand: ${model.formula[isChanged ? 1 : 0]}`,
          byHand === null ? '' : ` = ${time(byHand * 1e6)}`),
        before.length > 0 &&
          h('span', {}, h('i', { class: 'swatch dashed' }), `without the change: ${model.formula[0]}`),
        h('span', {}, h('i', { class: 'swatch dot' }), 'simulated'),
        h('span', {}, h('i', { class: 'swatch ring' }), now ? `here: ${time(now.step * 1e6)}` : 'here'),
      ),
    );
  }
}
