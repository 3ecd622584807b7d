// The rows of the timeline: for each rank its micro-batches, its streams, and what is exposed.
import { type Lane, type RankView, viewOf } from './analysis';
import type { PipelineRow, Run, ShownRank } from './data';
import { percent, time, whole } from './text';

export const kGutter = 250;
export const kAxis = 26;

export interface Row {
  kind: 'run' | 'blocks' | 'lane' | 'strip' | 'gap' | 'pipe';
  y: number;
  height: number;
  run: Run;
  view?: RankView;
  lane?: Lane;
  pipe?: PipelineRow;
  label: string;
  rankLabel?: string;
}

export interface RankChoice {
  run: Run;
  shown: ShownRank;
  rank: number;
  alike: number; // ranks that it stands for, itself included
}

export interface RowOptions {
  asPipelines: boolean; // where there is one
  showMessages: boolean; // of pipelines
}

// Whether two ranks of a role do the same at the same times.
function isAlike(run: Run, a: ShownRank, b: ShownRank): boolean {
  if (a.role !== b.role || a.end - a.first !== b.end - b.first) return false;
  const least = run.step / 2000; // less is no pixel
  for (let i = a.first, j = b.first; i < a.end; ++i, ++j)
    if (
      run.position[i] !== run.position[j] ||
      Math.abs(run.begin[i] - run.begin[j]) > least ||
      Math.abs(run.end[i] - run.end[j]) > least ||
      Math.abs(run.ready[i] - run.ready[j]) > least
    )
      return false;
  return true;
}

// Ranks that are shown at first: those that were asked for, one of each role, and what differs from
// it.
export function firstRanks(run: Run, most: number): RankChoice[] {
  const groups: RankChoice[] = [];
  for (const shown of run.shown) {
    const like = groups.find((one) => isAlike(run, one.shown, shown));
    if (like) like.alike += shown.standsFor;
    else groups.push({ run, shown, rank: shown.rank, alike: shown.standsFor });
  }
  const roles = new Set<number>();
  const isFirst = groups.map((one) => {
    const isNew = !roles.has(one.shown.role);
    roles.add(one.shown.role);
    return isNew;
  });
  const ordered = [
    ...groups.filter((_, i) => isFirst[i]),
    ...groups.filter((_, i) => !isFirst[i]),
  ].slice(0, most);
  const choices = groups.filter((one) => ordered.includes(one));
  for (const rank of run.asked) {
    const shown = run.shownFor(rank);
    if (shown && !choices.some((one) => one.rank === rank))
      choices.push({ run, shown, rank, alike: 1 });
  }
  return choices.sort((a, b) => a.rank - b.rank);
}

// Whether a lane has nothing but messages between stages.
const isOfMessages = (lane: Lane) =>
  lane.communicates &&
  lane.spans.every((span) => {
    const kind = lane.run.ops.kind[lane.run.op[span]];
    return kind === 'send' || kind === 'receive';
  });

// Of several steps: how much longer than the first.
export function differenceOf(runs: Run[], run: Run): string {
  if (run === runs[0]) return '';
  const share = run.step / runs[0].step - 1;
  return `, ${share > 0 ? '+' : ''}${percent(share)}`;
}

// All rows of the runs, and how high they are together.
export function layOutRows(
  runs: Run[],
  choices: RankChoice[],
  options: RowOptions,
): { rows: Row[]; height: number } {
  const rows: Row[] = [];
  let y = 0;
  const many = choices.length > 12;
  // Small multiples: all on one screen, so that lanes are thin, and colours alone say whose they are.
  const small = runs.length > 3 && !options.asPipelines;
  const add = (row: Omit<Row, 'y'>) => {
    rows.push({ ...row, y });
    y += row.height;
  };
  for (const run of runs) {
    const bubble = options.asPipelines && run.pipeline ? run.pipeline.bubble : -1;
    add({
      kind: 'run',
      height: small ? 20 : runs.length > 1 ? 24 : 4,
      run,
      label:
        runs.length > 1
          ? `${run.letter}  ${run.title}   ${run.provenance}, one step takes ${time(run.step)}` +
            differenceOf(runs, run) +
            (bubble >= 0 ? `, bubble ${percent(bubble)}` : '')
          : '',
    });
    if (options.asPipelines && run.pipeline) {
      const count = run.pipeline.rows.length * runs.length;
      const height = count > 40 ? 14 : count > 16 ? 17 : 22;
      for (const pipe of run.pipeline.rows)
        add({
          kind: 'pipe',
          height,
          run,
          pipe,
          label: `bubble ${percent(pipe.bubble)}`,
          rankLabel: pipe.name,
        });
      add({ kind: 'gap', height: count > 16 ? 3 : 8, run, label: '' });
      continue;
    }
    for (const choice of choices) {
      if (choice.run !== run) continue;
      const view = viewOf(run, choice.shown);
      const role = run.roles[choice.shown.role];
      const stage = run.roles.length > 1 ? `${role.name}, ` : '';
      const others =
        choice.rank === choice.shown.rank && choice.alike > 1
          ? ` \u00d7${whole(choice.alike)}`
          : '';
      let rankLabel: string | undefined = `${stage}rank ${choice.rank}${others}`;
      if (view.blocks.length > 0) {
        add({ kind: 'blocks', height: 18, run, view, label: 'micro-batch', rankLabel });
        rankLabel = undefined;
      }
      for (const lane of view.lanes) {
        if (!options.showMessages && view.blocks.length > 0 && isOfMessages(lane)) continue;
        add({
          kind: 'lane',
          height: small ? (lane.communicates ? 7 : 13) : many ? 15 : lane.communicates ? 18 : 22,
          run,
          view,
          lane,
          label: lane.name,
          rankLabel,
        });
        rankLabel = undefined;
      }
      add({ kind: 'strip', height: small ? 5 : 7, run, view, label: '' });
      add({ kind: 'gap', height: small ? 2 : many ? 3 : 8, run, label: '' });
    }
  }
  return { rows, height: y };
}

// Whether there are lanes that only hold messages between stages.
export const haveMessages = (choices: RankChoice[]): boolean =>
  choices.some(
    ({ run, shown }) =>
      viewOf(run, shown).blocks.length > 0 && viewOf(run, shown).lanes.some(isOfMessages),
  );
