#include "tools/foreign/logs/training/training_log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>

#include "sim/base/error.h"
#include "tools/foreign/logs/nccl_tests/line_frame.h"

namespace rehearse {
namespace {

// What a program writes in a line of its log.
struct StepLine {
  const char* program;
  std::string_view before;  // the figure
  std::string_view needs;   // also in the line, in front of it or behind it
  StepUnit unit;
  double scale;
  bool is_of_run = false;  // once, of all steps together
};
constexpr StepLine kStepLines[] = {
    {"Megatron-LM", "elapsed time per iteration (ms):", "iteration", StepUnit::kSeconds, 1e-3},
    {"Megatron-DeepSpeed", "elapsed time per iteration (s):", "iteration", StepUnit::kSeconds, 1},
    {"nanotron", "time_per_iteration_ms:", "iteration", StepUnit::kSeconds, 1e-3},
    {"MaxText", "seconds:", "completed step:", StepUnit::kSeconds, 1},
    {"NeMo", "train_step_timing in s:", "", StepUnit::kSeconds, 1},
    {"Megatron-Bridge", "Step Time :", "GPU utilization", StepUnit::kSeconds, 1},
    {"torchtitan", "tps:", "loss:", StepUnit::kTokensPerSecondOfADevice, 1},
    {"torchtune", "tokens_per_second_per_gpu:", "Step ", StepUnit::kTokensPerSecondOfADevice, 1},
    {"axolotl", "'tokens_per_second_per_gpu':", "'loss'", StepUnit::kTokensPerSecondOfADevice, 1},
    {"axolotl", "'tokens/train_per_sec_per_gpu':", "'loss'", StepUnit::kTokensPerSecondOfADevice,
     1},
    {"DeepSpeed", "CurrSamplesPerSec=", "global_step=", StepUnit::kSamplesPerSecond, 1},
    {"Hugging Face's Trainer", "'train_samples_per_second':", "", StepUnit::kSamplesPerSecond, 1,
     true}};
constexpr size_t kKindsOfLines = std::size(kStepLines);

// "1,234.5", "3.2K", "'12.5'": the figure at the beginning, with what it is multiplied by.
std::optional<double> FigureAt(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\'' || text.front() == '"'))
    text.remove_prefix(1);
  std::string digits;
  size_t at = 0;
  for (; at < text.size() && digits.size() < 40; ++at) {
    const char c = text[at];
    const bool is_comma =
        c == ',' && at + 1 < text.size() && text[at + 1] >= '0' && text[at + 1] <= '9';
    if (is_comma) continue;
    if ((c < '0' || c > '9') && c != '.' && c != 'e' && c != 'E' && c != '-' && c != '+') break;
    digits += c;
  }
  double value = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (fault != std::errc() || end == digits.data() || !std::isfinite(value)) return std::nullopt;
  struct Suffix {
    char sign;
    double factor;
  };
  constexpr Suffix kSuffixes[] = {{'K', 1e3}, {'M', 1e6}, {'B', 1e9}, {'G', 1e9}, {'T', 1e12}};
  for (const Suffix& suffix : kSuffixes)
    if (at < text.size() && text[at] == suffix.sign) value *= suffix.factor;
  return value > 0 && value < 1e18 ? std::optional(value) : std::nullopt;
}

// The figure of a progress bar: "10/100 [01:23<12:30,  8.34s/it]" or "1.20it/s]".
std::optional<double> SecondsOfBar(std::string_view line) {
  const bool is_slow = line.find("s/it") != std::string_view::npos;
  const size_t end = is_slow ? line.find("s/it") : line.find("it/s");
  const size_t comma = end == std::string_view::npos ? end : line.rfind(", ", end);
  if (comma == std::string_view::npos || line.find('[') > comma || line.find('|') > comma)
    return std::nullopt;
  const std::optional<double> value = FigureAt(line.substr(comma + 2, end - comma - 2));
  if (!value) return std::nullopt;
  return is_slow ? *value : 1 / *value;
}

// Steps at the beginning that do not count: a fifth, at most ten.
size_t WarmSteps(size_t steps) {
  constexpr size_t kMost = 10;
  return steps < 3 ? 0 : std::max<size_t>(std::min(steps / 5, kMost), 1);
}

}  // namespace

double TrainingLog::Share(double part) const {
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<size_t>(std::llround(part * last))];
}

TrainingLog ReadTrainingLog(std::string_view text, const std::string& name) {
  std::array<std::vector<double>, kKindsOfLines> found;
  std::vector<double> bar;
  for (size_t begin = 0; begin < text.size();) {
    // Progress bars return to the beginning of their line.
    const size_t end = std::min(text.find_first_of("\r\n", begin), text.size());
    constexpr size_t kLongestLine = 4096;
    const std::string_view raw = text.substr(begin, std::min(end - begin, kLongestLine));
    begin = end + 1;
    if (raw.empty()) continue;
    const bool may_be = raw.find(':') != std::string_view::npos ||
                        raw.find('=') != std::string_view::npos ||
                        raw.find("it") != std::string_view::npos;
    if (!may_be) continue;
    std::string line = WithoutFrame(raw);
    std::replace(line.begin(), line.end(), '"', '\'');  // the summary is also a JSON file
    bool is_known = false;
    for (size_t i = 0; i < kKindsOfLines && !is_known; ++i) {
      const StepLine& kind = kStepLines[i];
      const size_t at = line.find(kind.before);
      if (at == std::string::npos || line.find(kind.needs) == std::string::npos) continue;
      const std::optional<double> value =
          FigureAt(std::string_view(line).substr(at + kind.before.size()));
      if (value) found[i].push_back(*value * kind.scale);
      is_known = value.has_value();
    }
    if (is_known) continue;
    if (const std::optional<double> seconds = SecondsOfBar(line)) bar.push_back(*seconds);
  }
  TrainingLog log;
  std::vector<double> steps;
  for (size_t i = 0; i < kKindsOfLines && steps.empty(); ++i) {
    if (found[i].empty()) continue;
    log.program = kStepLines[i].program;
    log.unit = kStepLines[i].unit;
    steps = std::move(found[i]);
    if (kStepLines[i].is_of_run) steps = {steps.back()};
  }
  if (steps.empty() && !bar.empty()) {
    // A bar says a mean of what has passed.
    log.program = "a progress bar";
    steps = {bar.back()};
  }
  if (steps.empty()) {
    throw Error({name, 0, ""},
                "no line says how long a step took; known are logs of Megatron-LM, NeMo, "
                "torchtitan, nanotron, MaxText, torchtune, axolotl, Hugging Face's Trainer and "
                "DeepSpeed");
  }
  log.left_out = WarmSteps(steps.size());
  log.values.assign(steps.begin() + static_cast<ptrdiff_t>(log.left_out), steps.end());
  std::sort(log.values.begin(), log.values.end());
  return log;
}

}  // namespace rehearse
