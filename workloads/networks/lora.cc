#include "workloads/networks/lora.h"

namespace rehearse {
namespace {

constexpr FlagName<LoraTargets> kTargetNames[] = {{"qkv", &LoraTargets::qkv},
                                                  {"projection", &LoraTargets::projection},
                                                  {"up", &LoraTargets::up},
                                                  {"down", &LoraTargets::down}};

}  // namespace

const Fields<LoraAdapters>& LoraFields() {
  constexpr int64_t kMostRank = 1 << 16;
  static const Fields<LoraAdapters> fields(
      "model: decoder: lora",
      "Low-rank adapters: they are trained, and all else of the model is frozen.",
      {{"rank", &LoraAdapters::rank, AWhole(1, kMostRank), Required(),
        "columns between the two matrices of an adapter", "16"},
       {"on", &LoraAdapters::on, FlagsOf(kTargetNames), Optional("all four"),
        "which products have adapters: of queries, keys and values, the one after attention, and "
        "those of MLPs (not of experts)",
        R"(["qkv", "projection"])"}});
  return fields;
}

LoraAdapters ReadLora(const JsonReader& object) {
  const JsonReader reader = object.As(LoraFields().shape());
  LoraAdapters adapters;
  LoraFields().ReadInto(reader, &adapters);
  if (!adapters.on.Any()) reader.At("on").Expected("at least one product that has adapters");
  return adapters;
}

}  // namespace rehearse
