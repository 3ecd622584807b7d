#include "real/transports/launcher.h"

#include <cctype>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

// The variables of one launcher; those of local ranks may be missing.
struct Variables {
  const char* launcher;
  const char* rank;
  const char* ranks;
  const char* local_rank;
  const char* local_ranks;
  const char* job[2];  // together they name the run
};

// torchrun first: it may run below mpirun or srun. srun last: mpirun in an allocation sees its
// variables too.
constexpr Variables kLaunchers[] = {
    {"torchrun",
     "RANK",
     "WORLD_SIZE",
     "LOCAL_RANK",
     "LOCAL_WORLD_SIZE",
     {"TORCHELASTIC_RUN_ID", "MASTER_PORT"}},
    {"mpirun",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
    {"mpirun",
     "PMI_RANK",
     "PMI_SIZE",
     "MPI_LOCALRANKID",
     "MPI_LOCALNRANKS",
     {"HYDI_CONTROL_FD", "PMI_ID"}},
    {"srun",
     "SLURM_PROCID",
     "SLURM_NTASKS",
     "SLURM_LOCALID",
     "SLURM_STEP_TASKS_PER_NODE",
     {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
};

std::optional<uint32_t> Count(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  // "4", or Slurm's "4(x2)": as many on each of two nodes.
  const std::string_view view(text);
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc() || (end != view.data() + view.size() && *end != '(')) {
    throw Error(
        fmt::format("environment: found {}=\"{}\", expected a whole number", variable, text));
  }
  return value;
}

std::string JobName(const Variables& variables) {
  std::string name = variables.launcher;
  for (const char* variable : variables.job) {
    const char* text = std::getenv(variable);
    if (text == nullptr) continue;
    name += '-';
    for (const char* c = text; *c != '\0'; ++c) {
      name += std::isalnum(static_cast<unsigned char>(*c)) != 0 ? *c : '.';
    }
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
    launch.local_ranks = Count(variables.local_ranks).value_or(*ranks);
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
