#include "tools/foreign/runs/adapters.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "sim/base/visible_text.h"
#include "tools/foreign/runs/model_names.h"

namespace rehearse {
namespace {

struct AdaptedNames {
  const char* product;  // as a scenario calls it
  std::vector<std::string> names;
  bool has_parts;  // others have adapters for each part of it
};

// Hugging Face's, torchtune's, Megatron's, and those of older GPTs.
const std::array<AdaptedNames, 4>& ProductsWithAdapters() {
  static const std::array<AdaptedNames, 4> known = {{
      {"qkv",
       {"q_proj", "k_proj", "v_proj", "qkv_proj", "query_key_value", "c_attn", "linear_qkv", "Wqkv",
        "query", "key", "value", "attention_qkv"},
       true},
      {"projection",
       {"o_proj", "output_proj", "out_proj", "dense", "c_proj", "linear_proj", "attention_dense"},
       false},
      {"up",
       {"gate_proj", "up_proj", "gate_up_proj", "w1", "w3", "fc1", "fc_in", "c_fc", "linear_fc1",
        "dense_h_to_4h", "mlp_fc1"},
       true},
      {"down",
       {"down_proj", "w2", "fc2", "fc_out", "linear_fc2", "dense_4h_to_h", "mlp_fc2"},
       false},
  }};
  return known;
}

}  // namespace

void SetAdapters(const NamedAdapters& adapters, ScenarioDraft* draft) {
  std::vector<std::string> on;
  std::set<std::string> unknown(adapters.on.begin(), adapters.on.end());
  bool has_parts = false;
  for (const AdaptedNames& known : ProductsWithAdapters()) {
    uint32_t parts = 0;
    for (const std::string& name : known.names) parts += unknown.erase(name) > 0 ? 1 : 0;
    if (parts == 0 && !adapters.on.empty()) continue;
    on.emplace_back(known.product);
    has_parts = has_parts || (known.has_parts && (parts > 1 || adapters.on.empty()));
  }
  if (on.empty()) {
    draft->Fail(adapters.from,
                fmt::format("found adapters beside {}; expected some of a decoder's products, such "
                            "as q_proj, o_proj, up_proj or down_proj",
                            VisibleText(fmt::format("{}", fmt::join(unknown, ", ")))));
  }
  const bool has_mlp = std::any_of(on.begin(), on.end(), [](const std::string& product) {
    return product == "up" || product == "down";
  });
  nlohmann::ordered_json lora = {{"rank", adapters.rank}};
  if (on.size() < ProductsWithAdapters().size()) lora["on"] = on;
  draft->Set("/model/lora", std::move(lora), adapters.from);
  if (!unknown.empty()) {
    draft->Remark(
        VisibleText(fmt::format("adapters are not supported beside {}", fmt::join(unknown, ", "))));
  }
  if (has_parts)
    draft->Remark("Q, K and V, and gate and up, have one pair of adapters each, not one a part");
  if (has_mlp && HasExperts(*draft))
    draft->Remark("experts have no adapters here, though they may there");
  if (adapters.is_quantised)
    draft->Remark("the frozen model is quantised there; here it is kept in 16 bits");
}

}  // namespace rehearse
