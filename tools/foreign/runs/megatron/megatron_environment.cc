// Variables of the environment that NCCL, CUDA and Transformer Engine look at.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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

std::string LowerCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return text;
}

std::optional<int64_t> WholeOf(const std::string& text, int64_t least, int64_t most) {
  int64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = fault == std::errc() && end == text.data() + text.size();
  return is_whole && number >= least && number <= most ? std::optional(number) : std::nullopt;
}

bool IsOneOf(const std::string& word, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* one) { return word == one; });
}

// What NCCL_ALGO and NCCL_PROTO say; "" for nothing.
struct NcclChoice {
  std::string algorithm;
  std::string protocol;
  Origin from;
};

// Sets what the simulator has a key for. Whether it has.
bool HonourNccl(const WrittenVariable& variable, NcclChoice* choice, ScenarioDraft& draft) {
  const Origin from{variable.name, variable.line};
  const std::string value = LowerCase(variable.value);
  const auto set = [&](const char* key, const nlohmann::ordered_json& ours) {
    draft.Set(std::string("/simulator/") + key, ours, from);
    return true;
  };
  if (variable.name == "NCCL_ALGO" && value == "^nvls") return set("nvls", false);
  if (variable.name == "NCCL_ALGO" && IsOneOf(value, {"ring", "tree"})) {
    choice->algorithm = value;
    choice->from = from;
    return true;
  }
  if (variable.name == "NCCL_PROTO" && IsOneOf(value, {"ll", "ll128", "simple"})) {
    choice->protocol = value;
    choice->from = from;
    return true;
  }
  if (variable.name == "NCCL_NVLS_ENABLE") {
    const std::optional<int64_t> on = WholeOf(value, 0, 2);
    return on && set("nvls", *on != 0);
  }
  if (variable.name == "NCCL_PXN_DISABLE") {
    const std::optional<int64_t> off = WholeOf(value, 0, 1);
    return off && set("pxn", *off == 0);
  }
  if (variable.name == "NCCL_CROSS_NIC") {
    const std::optional<int64_t> crosses = WholeOf(value, 0, 2);
    return crosses && set("cross_nic", *crosses == 1);
  }
  if (variable.name == "NCCL_MAX_NCHANNELS" || variable.name == "NCCL_MAX_CTAS") {
    const std::optional<int64_t> most = WholeOf(value, 1, 24);
    return most && set("channels", *most);
  }
  return false;
}

// NCCL's trees only sum, and neither is asked about what goes from rank to rank.
void SetChoiceOfNccl(const NcclChoice& choice, ScenarioDraft& draft) {
  if (choice.algorithm.empty() && choice.protocol.empty()) return;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  if (draft.json().contains("simulator") && draft.json()["simulator"].contains("collectives"))
    rows = draft.json()["simulator"]["collectives"];
  for (const char* kind : {"all-reduce", "all-gather", "reduce-scatter"}) {
    const bool has_algorithm = !choice.algorithm.empty() &&
                               (choice.algorithm == "ring" || std::string(kind) == "all-reduce");
    if (!has_algorithm && choice.protocol.empty()) continue;
    nlohmann::ordered_json row = {{"kind", kind}};
    if (has_algorithm) row["algorithm"] = choice.algorithm;
    if (!choice.protocol.empty()) row["protocol"] = choice.protocol;
    rows.push_back(std::move(row));
  }
  draft.Set("/simulator/collectives", rows, choice.from);
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
  NcclChoice choice;
  for (const WrittenVariable& variable : environment) {
    const bool says_nothing =
        std::any_of(std::begin(kSaysNothing), std::end(kSaysNothing),
                    [&](std::string_view begin) { return variable.name.starts_with(begin); });
    // More connections than one, and every algorithm, are what there is without a word.
    const bool is_usual =
        (variable.name == "CUDA_DEVICE_MAX_CONNECTIONS" && variable.value != "1") ||
        (variable.name == "NVTE_ALLOW_NONDETERMINISTIC_ALGO" && variable.value == "1");
    if (says_nothing || is_usual || IsAboutAttention(variable.name)) continue;
    if (HonourNccl(variable, &choice, draft)) continue;
    draft.Remark(fmt::format("not supported: {}={}; {}", variable.name,
                             variable.value.substr(0, 60), InsteadOf(variable)));
  }
  SetChoiceOfNccl(choice, draft);
}

}  // namespace rehearse
