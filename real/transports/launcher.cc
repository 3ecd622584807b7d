#include "real/transports/launcher.h"

#include <cctype>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/fnv.h"

namespace rehearse {
namespace {

// The variables of one launcher; those for local ranks may be missing.
struct Variables {
  const char* launcher;
  const char* rank;
  const char* ranks;
  const char* local_rank;
  const char* local_ranks;
  const char* job[3];  // together they name the run; some may be null
};

// torchrun is first, as it may run under mpirun or srun; srun is last, as mpirun in an allocation
// also sees its variables.
constexpr Variables kLaunchers[] = {
    {"torchrun",
     "RANK",
     "WORLD_SIZE",
     "LOCAL_RANK",
     "LOCAL_WORLD_SIZE",
     {"TORCHELASTIC_RUN_ID", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"}},
    {"mpirun",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", nullptr}},
    {"mpirun",
     "PMI_RANK",
     "PMI_SIZE",
     "MPI_LOCALRANKID",
     "MPI_LOCALNRANKS",
     {"HYDI_CONTROL_FD", "PMI_ID", nullptr}},
    {"srun",
     "SLURM_PROCID",
     "SLURM_NTASKS",
     "SLURM_LOCALID",
     "SLURM_STEP_TASKS_PER_NODE",
     {"SLURM_JOB_ID", "SLURM_STEP_ID", nullptr}},
};

[[noreturn]] void ExpectedNumber(const char* variable, const char* text) {
  throw Error(fmt::format("environment: found {}=\"{}\", expected a whole number", variable, text));
}

// Takes the number at the beginning of `text`; returns nothing if there is none.
std::optional<uint32_t> TakeNumber(std::string_view* text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc()) return std::nullopt;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return value;
}

std::optional<uint32_t> Count(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  std::string_view rest(text);
  const auto value = TakeNumber(&rest);
  if (!value || !rest.empty()) ExpectedNumber(variable, text);
  return value;
}

// "4", or Slurm's "4(x2),3": four on each of two nodes, three on the next.
std::optional<uint32_t> CountOnThisNode(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  uint32_t nodes_before = Count("SLURM_NODEID").value_or(0);
  std::string_view rest(text);
  while (true) {
    const auto value = TakeNumber(&rest);
    uint32_t nodes = 1;
    if (value && rest.starts_with("(x")) {
      rest.remove_prefix(2);
      nodes = TakeNumber(&rest).value_or(0);
      if (nodes == 0 || !rest.starts_with(')')) ExpectedNumber(variable, text);
      rest.remove_prefix(1);
    }
    if (!value || (!rest.empty() && !rest.starts_with(','))) ExpectedNumber(variable, text);
    if (nodes_before < nodes || rest.empty()) return value;
    nodes_before -= nodes;
    rest.remove_prefix(1);
  }
}

std::string JobName(const Variables& variables) {
  std::string name = variables.launcher;
  for (const char* variable : variables.job) {
    const char* text = variable == nullptr ? nullptr : std::getenv(variable);
    if (text == nullptr) continue;
    name += '-';
    for (const char* c = text; *c != '\0'; ++c) {
      name += std::isalnum(static_cast<unsigned char>(*c)) != 0 ? *c : '.';
    }
  }
  constexpr size_t kLongest = 150;  // file names contain it, with something before and after it
  if (name.size() > kLongest) {
    Fnv1a hash;
    hash.Add(name);
    name = fmt::format("{}-{:016x}", name.substr(0, kLongest - 17), hash.hash());
  }
  return name;
}

}  // namespace

std::optional<Launch> DetectLaunch() {
  for (const Variables& variables : kLaunchers) {
    const auto rank = Count(variables.rank);
    const auto ranks = Count(variables.ranks);
    if (!rank || !ranks) continue;
    if (*rank >= *ranks) {
      throw Error(fmt::format(
          "environment: found {}={} and {}={}, expected a rank below the number of ranks",
          variables.rank, *rank, variables.ranks, *ranks));
    }
    Launch launch;
    launch.launcher = variables.launcher;
    launch.job = JobName(variables);
    launch.rank = *rank;
    launch.ranks = *ranks;
    launch.local_rank = Count(variables.local_rank).value_or(*rank);
    const auto local_ranks = CountOnThisNode(variables.local_ranks);
    launch.local_ranks = local_ranks.value_or(*ranks);
    launch.knows_local_ranks = local_ranks.has_value();
    if (launch.local_rank >= launch.local_ranks) {
      throw Error(fmt::format(
          "environment: found {}={} and {}={}, expected a local rank below their number",
          variables.local_rank, launch.local_rank, variables.local_ranks, launch.local_ranks));
    }
    return launch;
  }
  return std::nullopt;
}

}  // namespace rehearse
