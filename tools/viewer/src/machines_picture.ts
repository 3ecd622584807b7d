// The first screen of a search's page and the timelines below it, as one PNG.
import type { Machines } from './data';
import { kExplained, linesOf, type Shown } from './machines';
import { inkOf, shapeOf } from './marks';
import { scatter } from './scatter';
import type { Timeline } from './timeline';

const kWidth = 1280;
const kMargin = 24;
const kRatio = 2; // of pixels
const kInk = '#16202b';
const kFaint = '#5a6876';

function wrapped(pen: CanvasRenderingContext2D, text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line ? `${line} ${word}` : word;
    if (line && pen.measureText(longer).width > width) {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  return line ? [...lines, line] : lines;
}

async function imageOf(url: string): Promise<HTMLImageElement> {
  const image = new Image();
  image.src = url;
  await image.decode();
  return image;
}

// Returns a data URL. `timeline` draws itself again when it is next shown.
export async function machinesPicture(
  machines: Machines,
  measures: Shown[],
  x: Shown,
  y: Shown,
  timeline: Timeline | null,
): Promise<string> {
  const inner = kWidth - 2 * kMargin;
  const svg = scatter(machines, x, y, {
    width: inner,
    height: 420,
    ink: kInk,
    faint: kFaint,
    grid: '#e3e8ed',
    back: '#ffffff',
  });
  svg.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  const dots = await imageOf(
    `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(svg))}`,
  );
  let steps: HTMLImageElement | null = null;
  if (timeline) {
    const picture = timeline.picture(inner);
    steps = await imageOf(picture.url);
    timeline.print(false);
  }

  const canvas = document.createElement('canvas');
  const pen = canvas.getContext('2d')!;
  // Once to know how high it is, once to draw.
  const paint = (): number => {
    let top = kMargin;
    const write = (text: string, font: string, ink: string, high: number, width = inner) => {
      pen.font = font;
      pen.fillStyle = ink;
      for (const line of wrapped(pen, text, width)) {
        pen.fillText(line, kMargin, top + high * 0.75);
        top += high;
      }
    };
    write(machines.title, 'bold 22px system-ui, sans-serif', kInk, 30);
    write(machines.facts.join(', '), '13px system-ui, sans-serif', kFaint, 19);
    top += 5;
    write(machines.sentence, '17px system-ui, sans-serif', kInk, 24);
    top += 8;

    const first = 200;
    const last = 190;
    const each = (inner - first - last) / measures.length;
    const rightOf = (column: number) => kMargin + first + each * (column + 1) - 8;
    const cell = (text: string, right: number, at: number, font: string, ink: string) => {
      pen.font = font;
      pen.fillStyle = ink;
      pen.textAlign = 'right';
      pen.fillText(text, right, at, each - 4);
      pen.textAlign = 'left';
    };
    measures.forEach((measure, i) => {
      cell(measure.title, rightOf(i), top + 12, 'bold 12px system-ui, sans-serif', kInk);
      cell(measure.unit, rightOf(i), top + 27, '11px system-ui, sans-serif', kFaint);
    });
    pen.font = 'bold 12px system-ui, sans-serif';
    pen.fillStyle = kInk;
    pen.fillText('most of the step', kMargin + inner - last + 8, top + 12);
    top += 34;
    for (const line of linesOf(machines, measures)) {
      pen.fillStyle = '#cfd7df';
      pen.fillRect(kMargin, top, inner, 1);
      top += 4;
      pen.save();
      pen.translate(kMargin + 8, top + 11);
      pen.scale(5.5, 5.5);
      pen.fillStyle = inkOf(line.machine);
      pen.fill(new Path2D(shapeOf(line.machine)));
      pen.restore();
      pen.font = 'bold 13px system-ui, sans-serif';
      pen.fillStyle = kInk;
      const names = wrapped(pen, line.name, first - 24);
      names.forEach((name, i) => pen.fillText(name, kMargin + 20, top + 15 + 15 * i, first - 24));
      pen.font = '11px system-ui, sans-serif';
      pen.fillStyle = kFaint;
      pen.fillText(line.under, kMargin + 20, top + 15 + 15 * names.length);
      line.cells.forEach((one, i) => {
        cell(one.value, rightOf(i), top + 15, 'bold 13px system-ui, sans-serif', kInk);
        one.small.forEach((small, k) =>
          cell(small, rightOf(i), top + 29 + 13 * k, '11px system-ui, sans-serif', kFaint),
        );
      });
      pen.font = '12px system-ui, sans-serif';
      pen.fillStyle = kInk;
      const binds = wrapped(pen, line.binds, last - 10);
      binds.forEach((bind, i) => pen.fillText(bind, kMargin + inner - last + 8, top + 15 + 15 * i));
      const rows = Math.max(...line.cells.map((one) => one.small.length), names.length, binds.length - 1);
      top += 22 + 13 * rows;
      write(line.detail, '11px system-ui, sans-serif', kFaint, 15);
      top += 3;
    }
    top += 8;
    pen.drawImage(dots, kMargin, top, inner, 420);
    top += 424;
    write(kExplained, '11px system-ui, sans-serif', kFaint, 15);
    if (steps) {
      top += 8;
      write('A step of each best, on one scale of time', 'bold 15px system-ui, sans-serif', kInk, 22);
      const high = (steps.height * inner) / steps.width;
      pen.drawImage(steps, kMargin, top, inner, high);
      top += high;
    }
    return top + kMargin;
  };
  const height = Math.ceil(paint());
  canvas.width = kWidth * kRatio;
  canvas.height = height * kRatio;
  pen.scale(kRatio, kRatio);
  pen.fillStyle = '#ffffff';
  pen.fillRect(0, 0, kWidth, height);
  paint();
  return canvas.toDataURL('image/png');
}
