// The rows of the timeline: for each rank its micro-batches, its streams, and what is exposed.
import { type Lane, type RankView, viewOf } from './analysis';
import type { Run, ShownRank } from './data';
import { whole } from './text';

export const kGutter = 250;
export const kAxis = 26;

export interface Row {
  kind: 'run' | 'blocks' | 'lane' | 'strip' | 'gap';
  y: number;
  height: number;
  run: Run;
  view?: RankView;
  lane?: Lane;
  label: string;
  rankLabel?: string;
}

export interface RankChoice {
  run: Run;
  shown: ShownRank;
  rank: number;
}

// Ranks that are shown at first: one of each role of a pipeline, otherwise the first few.
export function firstRanks(run: Run, most: number): RankChoice[] {
  const choices: RankChoice[] = [];
  const seen = new Set<number>();
  for (const shown of run.shown) {
    if (run.roles.length > 1 && seen.has(shown.role)) continue;
    seen.add(shown.role);
    if (choices.length < most) choices.push({ run, shown, rank: shown.rank });
  }
  return choices;
}

// All rows of the runs, and how high they are together.
export function layOutRows(runs: Run[], choices: RankChoice[]): { rows: Row[]; height: number } {
  const rows: Row[] = [];
  let y = 0;
  const many = choices.length > 12;
  const add = (row: Omit<Row, 'y'>) => {
    rows.push({ ...row, y });
    y += row.height;
  };
  for (const run of runs) {
    add({
      kind: 'run',
      height: runs.length > 1 ? 24 : 4,
      run,
      label: runs.length > 1 ? `${run.letter}  ${run.title}` : '',
    });
    for (const choice of choices) {
      if (choice.run !== run) continue;
      const view = viewOf(run, choice.shown);
      const role = run.roles[choice.shown.role];
      const stage = run.roles.length > 1 ? `${role.name}, ` : '';
      const others =
        choice.rank === choice.shown.rank && choice.shown.standsFor > 1
          ? ` \u00d7${whole(choice.shown.standsFor)}`
          : '';
      let rankLabel: string | undefined = `${stage}rank ${choice.rank}${others}`;
      if (view.blocks.length > 0) {
        add({ kind: 'blocks', height: 18, run, view, label: 'micro-batch', rankLabel });
        rankLabel = undefined;
      }
      for (const lane of view.lanes) {
        add({
          kind: 'lane',
          height: many ? 13 : lane.communicates ? 18 : 22,
          run,
          view,
          lane,
          label: lane.name,
          rankLabel,
        });
        rankLabel = undefined;
      }
      add({ kind: 'strip', height: 7, run, view, label: '' });
      add({ kind: 'gap', height: many ? 3 : 8, run, label: '' });
    }
  }
  return { rows, height: y };
}
