// Variables of the environment that NCCL, CUDA and Transformer Engine look at.
#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "tools/foreign/runs/megatron/megatron_parts.h"

namespace rehearse {
namespace {

// Addresses, messages and time-outs: a name, and all that begin with it.
constexpr std::string_view kSaysNothing[] = {
    "NCCL_DEBUG",         "NCCL_SOCKET_IFNAME", "NCCL_SOCKET_FAMILY", "NCCL_IB_TIMEOUT",
    "NCCL_IB_RETRY",      "NCCL_IB_GID",        "NCCL_IB_TC",         "NCCL_IB_SL",
    "NCCL_IB_PKEY",       "NCCL_IB_ADDR",       "NCCL_IB_ROCE",       "NCCL_ASYNC_ERROR",
    "NCCL_BLOCKING",      "NCCL_TOPO_DUMP",     "NCCL_GRAPH_DUMP",    "NCCL_LAUNCH_MODE",
    "NCCL_COMM_ID",       "NCCL_HOSTID",        "NCCL_CONF_FILE",     "NCCL_SET_THREAD_NAME",
    "TORCH_NCCL_",        "NVTE_DEBUG",         "NVTE_BUILD",         "NVTE_FRAMEWORK",
    "NVTE_CUDA_ARCHS",    "NVTE_TORCH_COMPILE", "CUBLAS_WORKSPACE",   "NVTE_APPLY_QK",
    "NVTE_FWD_LAYERNORM", "NVTE_BWD_LAYERNORM"};

std::optional<std::string> ValueOfVariable(const std::vector<WrittenVariable>& environment,
                                           std::string_view name) {
  const auto found =
      std::find_if(environment.rbegin(), environment.rend(),
                   [&](const WrittenVariable& variable) { return variable.name == name; });
  return found == environment.rend() ? std::nullopt : std::optional<std::string>(found->value);
}

// Which attention Transformer Engine may use: all that are not switched off, the fastest first.
void ChooseAttention(const std::vector<WrittenVariable>& environment, ArgumentList& arguments,
                     ScenarioDraft& draft) {
  const bool has_flash = ValueOfVariable(environment, "NVTE_FLASH_ATTN") != "0";
  const bool has_fused = ValueOfVariable(environment, "NVTE_FUSED_ATTN") != "0";
  const bool is_chosen = draft.json()["training"].contains("attention");
  if (is_chosen || arguments.Has({"attention-backend"}) || (has_flash && has_fused)) return;
  draft.Set("/training/attention", has_flash ? "flash-2" : has_fused ? "cudnn" : "unfused");
}

bool IsAboutAttention(std::string_view name) {
  return name == "NVTE_FLASH_ATTN" || name == "NVTE_FUSED_ATTN" || name == "NVTE_UNFUSED_ATTN";
}

std::string InsteadOf(const WrittenVariable& variable) {
  if (variable.name == "CUDA_DEVICE_MAX_CONNECTIONS") {
    return "there kernels of all streams begin in the order in which they are launched; here they "
           "only wait for what they need";
  }
  if (variable.name == "NVTE_ALLOW_NONDETERMINISTIC_ALGO")
    return "kernels are those that need not repeat their results";
  if (variable.name.starts_with("NVTE_")) return "kernels are as without it";
  return "collectives are as NCCL chooses them without it";
}

}  // namespace

void HonourEnvironment(const std::vector<WrittenVariable>& environment, ArgumentList& arguments,
                       ScenarioDraft& draft) {
  ChooseAttention(environment, arguments, draft);
  for (const WrittenVariable& variable : environment) {
    const bool says_nothing =
        std::any_of(std::begin(kSaysNothing), std::end(kSaysNothing),
                    [&](std::string_view begin) { return variable.name.starts_with(begin); });
    // More connections than one, and every algorithm, are what there is without a word.
    const bool is_usual =
        (variable.name == "CUDA_DEVICE_MAX_CONNECTIONS" && variable.value != "1") ||
        (variable.name == "NVTE_ALLOW_NONDETERMINISTIC_ALGO" && variable.value == "1");
    if (says_nothing || is_usual || IsAboutAttention(variable.name)) continue;
    draft.Remark(fmt::format("not supported: {}={}; {}", variable.name,
                             variable.value.substr(0, 60), InsteadOf(variable)));
  }
}

}  // namespace rehearse
