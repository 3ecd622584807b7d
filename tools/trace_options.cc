#include "tools/trace_options.h"

#include <numeric>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/known_names.h"
#include "tools/foreign/traces/kineto/kineto_write.h"

namespace rehearse {

namespace po = boost::program_options;

void AddTraceOption(CommandSyntax* syntax) {
  syntax->options.add_options()(
      "trace", po::value<std::string>()->default_value("perfetto")->value_name("perfetto|kineto"),
      "the trace that --out writes: trace.pftrace, or kineto/rank_N.json.gz as PyTorch's profiler "
      "writes them, for Holistic Trace Analysis");
}

bool WantsKineto(const po::variables_map& values) {
  const std::string name = values["trace"].as<std::string>();
  if (name != "perfetto" && name != "kineto")
    throw Error(
        fmt::format("--trace: found \"{}\"{}", name, KnownNames(name, {"perfetto", "kineto"})));
  if (!values["trace"].defaulted() && values.count("out") == 0)
    throw Error("--trace says what --out DIR writes; give that too");
  return name == "kineto";
}

void AddKinetoTraces(const Schedule& schedule, const Timeline& timeline, const TraceNames& names,
                     const std::vector<uint32_t>& ranks, const std::string& folder,
                     OutputSet* files) {
  MakeFolder(folder + "/kineto");
  std::vector<uint32_t> all = ranks;
  if (all.empty()) {
    all.resize(timeline.ranks);
    std::iota(all.begin(), all.end(), 0u);
  }
  for (const uint32_t rank : all) {
    files->Add(fmt::format("{}/kineto/{}", folder, KinetoFileName(rank)),
               KinetoTraceOf(schedule, timeline, names, rank));
  }
}

}  // namespace rehearse
