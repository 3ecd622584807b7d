// A colour and a shape for each machine: Okabe and Ito's colours, which colour-blind people tell
// apart (jfly.uni-koeln.de/color), and shapes for those who print in black and white.
import { s } from './text';

const kColors = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#8a6d3b', '#7f7f7f'];

// Within a square from -1 to 1.
const kShapes = [
  'M1 0A1 1 0 1 1 -1 0A1 1 0 1 1 1 0Z',
  'M-.88 -.88H.88V.88H-.88Z',
  'M0 -1.1L1.05 .8H-1.05Z',
  'M0 -1.25L1.25 0L0 1.25L-1.25 0Z',
  'M0 1.1L1.05 -.8H-1.05Z',
  'M-.36 -1.1H.36V-.36H1.1V.36H.36V1.1H-.36V.36H-1.1V-.36H-.36Z',
  'M0 -1.2L.35 -.4L1.2 -.35L.55 .2L.75 1.05L0 .6L-.75 1.05L-.55 .2L-1.2 -.35L-.35 -.4Z',
  'M-.5 -1.05H.5L1.1 0L.5 1.05H-.5L-1.1 0Z',
];

export const inkOf = (machine: number): string => kColors[machine % kColors.length];
// With more machines than colours, no two have both in common.
export const shapeOf = (machine: number): string =>
  kShapes[(machine + Math.floor(machine / kShapes.length)) % kShapes.length];

export function shapeAt(machine: number, x: number, y: number, size: number, more = {}): SVGElement {
  return s('path', {
    d: shapeOf(machine),
    transform: `translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${size})`,
    fill: inkOf(machine),
    ...more,
  });
}

// In a legend or a table.
export function mark(machine: number, size: number): SVGElement {
  return s(
    'svg',
    { class: 'mark', width: size, height: size, viewBox: '-1.4 -1.4 2.8 2.8', 'aria-hidden': 'true' },
    s('path', { d: shapeOf(machine), fill: inkOf(machine) }),
  );
}
