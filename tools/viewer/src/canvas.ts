// A sharp canvas that fills its place.
import { h } from './text';

export class Sheet {
  readonly canvas: HTMLCanvasElement;
  readonly element: HTMLElement;
  width = 0;
  height = 0;
  private asked = false;

  constructor(
    label: string,
    private readonly paint: (
      context: CanvasRenderingContext2D,
      width: number,
      height: number,
    ) => void,
  ) {
    this.canvas = h('canvas', { role: 'img', 'aria-label': label });
    this.element = h('div', { class: 'sheet' }, this.canvas);
    new ResizeObserver(() => this.drawNow()).observe(this.element);
  }
  draw(): void {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.drawNow();
    });
  }
  drawNow(): void {
    this.width = this.element.clientWidth;
    this.height = this.element.clientHeight;
    if (this.width < 10 || this.height < 10) return;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    const context = this.canvas.getContext('2d')!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    this.paint(context, this.width, this.height);
  }
}

// From nothing to full, for the colour-blind too: dark blue over grey to yellow.
const kScale: [number, number, number][] = [
  [0, 42, 102],
  [52, 74, 110],
  [98, 105, 112],
  [140, 136, 116],
  [190, 174, 102],
  [234, 208, 74],
  [255, 234, 70],
];
export function loadColor(share: number): string {
  const at = Math.max(0, Math.min(share, 1)) * (kScale.length - 1);
  const i = Math.min(Math.floor(at), kScale.length - 2);
  const mix = (k: number) =>
    Math.round(kScale[i][k] + (kScale[i + 1][k] - kScale[i][k]) * (at - i));
  return `rgb(${mix(0)},${mix(1)},${mix(2)})`;
}
