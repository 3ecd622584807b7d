// A span in words, for its tooltip and for the view of what is chosen.
import { viewOf } from './analysis';
import type { Run } from './data';
import { bytes, percent, rate, time } from './text';

export function describe(run: Run, span: number): [string, string][] {
  const rows: [string, string][] = [];
  const shown = run.shownOf(span);
  const { ops } = run;
  const op = run.op[span];
  const layer = ops.layer[op] >= 0 ? `, layer ${ops.layer[op]}` : '';
  const several = run.roles[shown.role].repeats.length > 0 || run.microBatch[span] > 0;
  rows.push(['takes', time(run.end[span] - run.begin[span])]);
  rows.push(['from', `${time(run.begin[span])} to ${time(run.end[span])}`]);
  rows.push([
    'of',
    kPhaseNames[ops.phase[op]] +
      layer +
      (several ? `, micro-batch ${run.microBatch[span] + 1}` : ''),
  ]);
  rows.push(['on', `rank ${shown.rank}${shown.name ? ` (${shown.name})` : ''}`]);
  if (ops.detail[op]) rows.push(['is', ops.detail[op]]);
  if (run.communicates(span)) {
    rows.push(['axis', run.classOf(span).name]);
    if (run.bytesOf(span) > 0) {
      rows.push(['moves', bytes(run.bytesOf(span))]);
      if (run.busbwOf(span) > 0) rows.push(['busbw', rate(run.busbwOf(span))]);
    }
    const exposed = viewOf(run, shown).exposedOfSpans()[span - shown.first];
    rows.push([
      'exposed',
      exposed > 0 ? `${time(exposed)} of it` : 'nothing: hidden behind compute',
    ]);
    if (run.begin[span] > run.ready[span])
      rows.push(['waited', `${time(run.begin[span] - run.ready[span])} for the others`]);
    const held = run.bottleneckOf(span);
    if (held) rows.push(['held back', `by ${held.link.name}, ${percent(held.share)} of its time`]);
  }
  return rows;
}
const kPhaseNames = ['forward', 'recomputation', 'backward', 'synchronisation', 'update'];
