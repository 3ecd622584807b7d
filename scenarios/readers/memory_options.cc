#include "scenarios/readers/memory_options.h"

#include <charconv>
#include <string_view>

#include "sim/base/error.h"
#include "sim/base/json_reader.h"
#include "sim/base/units.h"
#include "sim/base/value_names.h"

namespace rehearse {
namespace {

constexpr ValueName<AllocatorKind> kAllocatorNames[] = {{"segments", AllocatorKind::kSegments},
                                                        {"expandable", AllocatorKind::kExpandable},
                                                        {"none", AllocatorKind::kNone}};

// "5%" -> 0.05; nothing if it is no share from 0 % to 100 %.
std::optional<double> ShareOfPercent(std::string_view text) {
  double percent = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), percent);
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  if (fault != std::errc() || unit != "%" || !(percent >= 0 && percent <= 100)) return std::nullopt;
  return percent / 100;
}

void CheckOptions(const JsonReader& reader, MemoryOptions* options) {
  const auto share = ShareOfPercent(options->headroom);
  if (!share || *share >= 1)
    reader.At("headroom").Expected("a share of the device from \"0%\" to less than \"100%\"");
  options->headroom_share = *share;
}

void CheckBound(const JsonReader& reader, MemoryBound* bound) {
  bound->share = ShareOfPercent(bound->at_most);
  if (bound->share && *bound->share > 0) return;
  bound->share.reset();
  const bool is_share = !bound->at_most.empty() && bound->at_most.back() == '%';
  if (is_share)
    reader.At("at_most").Expected("a share of the device of more than \"0%\", at most \"100%\"");
  try {
    bound->bytes = ParseSize(bound->at_most);
  } catch (const Error&) {
    reader.At("at_most").Expected(
        "a share of the device such as \"90%\", or a size such as \"70GiB\"");
  }
}

}  // namespace

const Fields<MemoryOptions>& MemoryOptionsFields() {
  static const Fields<MemoryOptions> fields(
      "memory", "What must stay free, and how arrays are allocated.",
      {{"headroom", &MemoryOptions::headroom, AText("share of the device"), Usual(),
        "a step that needs more than the rest of a device does not fit", "\"5%\""},
       {"allocator", &MemoryOptions::allocator, OneOf(kAllocatorNames), Usual(),
        "PyTorch's: segments of several arrays, or one that grows and shrinks "
        "(expandable_segments:True); none: what it leaves idle is not told",
        "\"expandable\""},
       {"allow_oom", &MemoryOptions::allow_oom, TrueFalse(), Usual(),
        "the step is known to have run, and is played even if it does not fit by our count",
        "true"}},
      CheckOptions);
  return fields;
}

const Fields<MemoryBound>& MemoryBoundFields() {
  static const Fields<MemoryBound> fields(
      "bound of memory",
      "How much the fullest rank may need: arrays, driver, communicators and libraries.",
      {{"at_most", &MemoryBound::at_most, AText("share of the device, or size"), Required(),
        "of its device, or in bytes", "\"90%\""}},
      CheckBound);
  return fields;
}

}  // namespace rehearse
