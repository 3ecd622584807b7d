// Sweep() and Search(): many steps, as `rehearse sweep` and `rehearse search` simulate them.
#include "scenarios/library/state.h"
#include "scenarios/searching/search.h"
#include "scenarios/searching/search_report.h"
#include "scenarios/sweeping/study_reader.h"
#include "scenarios/sweeping/study_report.h"
#include "scenarios/sweeping/sweep.h"

namespace rehearse::v1 {

Points Sweep(const Scenario& study, const RunOptions& options) {
  return Guarded([&] {
    CallerObserver observer(options.progress);
    ::rehearse::Study read = ReadStudy(study.state().document);
    SweepOptions sweep_options;
    sweep_options.threads = options.threads;
    sweep_options.observer = &observer;
    sweep_options.is_stopped = [&] { return observer.IsStopped(); };
    const ::rehearse::Sweep sweep = PlayStudy(read, sweep_options);
    if (sweep.interrupted > 0) throw ::rehearse::Stopped("stopped before the last point");
    const PublishedComparison comparison = Compare(read, sweep);
    auto state = std::make_shared<Points::State>();
    state->json = ToJson(read, sweep, comparison).dump(2) + "\n";
    state->text = ToText(read, sweep, comparison);
    state->table = TableOf(::rehearse::TableOf(read, sweep, comparison));
    return Points(std::move(state));
  });
}

Points Search(const Scenario& scenario, const RunOptions& options) {
  return Guarded([&] {
    CallerObserver observer(options.progress);
    const ::rehearse::Search search = ReadSearch(scenario.state().document);
    SearchRun run;
    run.explains_bests = search.per_axis.has_value();
    run.threads = options.threads;
    run.observer = &observer;
    run.is_stopped = [&] { return observer.IsStopped(); };
    const FoundPoints found = RunSearch(search, run);
    if (found.was_stopped) throw ::rehearse::Stopped("stopped before the last point");
    const SearchWords words;
    auto state = std::make_shared<Points::State>();
    state->json = ToJson(search, found, words).dump(2) + "\n";
    state->text = ToText(search, found, words);
    state->table = TableOf(::rehearse::TableOf(search, found));
    return Points(std::move(state));
  });
}

}  // namespace rehearse::v1
