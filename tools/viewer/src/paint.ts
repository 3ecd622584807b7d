// Colours of the page and what is drawn on several canvases.

let style: CSSStyleDeclaration | null = null;
const colors = new Map<string, string>();
export function color(name: string): string {
  let value = colors.get(name);
  if (value === undefined) {
    style ??= getComputedStyle(document.documentElement);
    colors.set(name, (value = style.getPropertyValue(name).trim()));
  }
  return value;
}
export function forgetColors(): void {
  colors.clear();
}

// As much of a text as fits.
export function fitted(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(text.slice(0, middle) + '\u2026').width <= width) low = middle;
    else high = middle - 1;
  }
  return low > 0 ? text.slice(0, low) + '\u2026' : '';
}

export function arrow(
  context: CanvasRenderingContext2D,
  x1: number,
  y1: number,
  x2: number,
  y2: number,
  ink: string,
  dashed: boolean,
): void {
  context.strokeStyle = context.fillStyle = ink;
  context.lineWidth = 1.8;
  context.setLineDash(dashed ? [5, 3] : []);
  const pull = Math.max(16, Math.min(Math.abs(x2 - x1) / 2, 60));
  context.beginPath();
  context.moveTo(x1, y1);
  context.bezierCurveTo(x1 + pull, y1, x2 - pull, y2, x2, y2);
  context.stroke();
  context.setLineDash([]);
  context.beginPath();
  context.moveTo(x2, y2);
  context.lineTo(x2 - 7, y2 - 4);
  context.lineTo(x2 - 7, y2 + 4);
  context.fill();
}

const hatches = new Map<string, CanvasPattern>();
export function forgetHatches(): void {
  hatches.clear();
}
// What is exposed, or a bubble.
export function hatch(context: CanvasRenderingContext2D, name = '--hatch'): CanvasPattern {
  const ink = color(name);
  let pattern = hatches.get(ink);
  if (!pattern) {
    const tile = document.createElement('canvas');
    tile.width = tile.height = 6;
    const pen = tile.getContext('2d')!;
    pen.strokeStyle = ink;
    pen.lineWidth = 1.6;
    pen.beginPath();
    for (const shift of [-6, 0, 6]) {
      pen.moveTo(shift - 1, 7);
      pen.lineTo(shift + 7, -1);
    }
    pen.stroke();
    pattern = context.createPattern(tile, 'repeat')!;
    hatches.set(ink, pattern);
  }
  return pattern;
}
