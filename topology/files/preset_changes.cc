#include "topology/files/preset_changes.h"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include "sim/base/json_fields.h"
#include "topology/files/cluster_shapes.h"
#include "topology/files/exact_text.h"
#include "topology/files/fabric_file.h"

namespace rehearse {
namespace {

constexpr ValueName<FabricWord> kFabricWords[] = {{"switch", FabricWord::kSwitch},
                                                  {"fat-tree", FabricWord::kFatTree},
                                                  {"rails", FabricWord::kRails},
                                                  {"rail-only", FabricWord::kRailOnly}};

const Fields<NicChanges>& NicChangeFields() {
  constexpr int64_t kMostPorts = 4096;
  static const Fields<NicChanges> fields(
      "node of a preset", "What is different in each machine.",
      {{"nics", &NicChanges::nics, AWhole(1, kMostCounted), Optional("the preset's"),
        "NICs of each machine", "4"},
       {"nic", &NicChanges::nic, AnExactBandwidth(), Optional("the preset's"),
        "bandwidth of each of their ports, and of the cables of a fabric of several levels",
        "\"200Gbps\""},
       {"nic_ports", &NicChanges::nic_ports, AWhole(1, kMostPorts), Optional("the preset's"),
        "ports of each NIC", "2"}});
  return fields;
}

const Fields<TreeChanges>& TreeChangeFields() {
  constexpr int64_t kMostOfASwitch = 4096;
  constexpr std::array kChoices = {RouteChoice::kSpray, RouteChoice::kFlowlet, RouteChoice::kEcmp,
                                   RouteChoice::kMinimal, RouteChoice::kValiant};
  static const Fields<TreeChanges> fields(
      "fabric of a preset", "What is different in its levels of switches.",
      {{"radix", &TreeChanges::radix, AWhole(4, kMostOfASwitch), Optional("the preset's, or 64"),
        "ports of a switch, an even number", "64"},
       {"levels", &TreeChanges::levels, AWhole(1, 6), Optional("as few as are needed"),
        "levels of switches", "3"},
       {"oversubscription", &TreeChanges::oversubscription, ANumber(1, kMostOfASwitch),
        Optional("the preset's, or 1"), "oversubscription at the leaves", "2"},
       {"planes", &TreeChanges::planes, AWhole(1, kMostOfASwitch), Optional("the preset's, or 1"),
        "parallel trees", "2"},
       {"routing", &TreeChanges::routing, OneNamedOf(kChoices), Optional("the preset's"),
        "how one of several equal paths is chosen"}});
  return fields;
}

template <typename Held>
void Take(const std::optional<Held>& said, std::optional<Held>* into, const JsonReader& object,
          const char* key) {
  if (!said) return;
  if (*into) object.At(key).Fail("is said a second time beside it");
  *into = said;
}

void ReadNode(const JsonReader& reader, NicChanges* changes) {
  const JsonReader object = reader.As(NicChangeFields().shape());
  NicChanges said;
  NicChangeFields().ReadInto(object, &said);
  Take(said.nics, &changes->nics, object, "nics");
  Take(said.nic, &changes->nic, object, "nic");
  Take(said.nic_ports, &changes->nic_ports, object, "nic_ports");
}

void ReadChangedFabric(const JsonReader& reader, MachineChanges* changes) {
  if (reader.IsString()) {
    const std::string word = reader.String();
    for (const ValueName<FabricWord>& known : kFabricWords)
      if (word == known.name) changes->tree.kind = known.value;
    if (!changes->tree.kind)
      reader.Expected("switch, fat-tree, rails or rail-only, or an object that describes a fabric");
    return;
  }
  if (!reader.IsObject()) reader.Expected("a kind of fabric, or an object that describes one");
  if (reader.Has("kind")) {
    changes->fabric = ReadFabric(reader);
    return;
  }
  const JsonReader object = reader.As(TreeChangeFields().shape());
  TreeChanges said;
  TreeChangeFields().ReadInto(object, &said);
  Take(said.radix, &changes->tree.radix, object, "radix");
  Take(said.levels, &changes->tree.levels, object, "levels");
  Take(said.oversubscription, &changes->tree.oversubscription, object, "oversubscription");
  Take(said.planes, &changes->tree.planes, object, "planes");
  Take(said.routing, &changes->tree.routing, object, "routing");
}

}  // namespace

std::vector<JsonKey> PresetChangeKeys() {
  std::vector<JsonKey> keys = NicChangeFields().shape().keys;
  keys.push_back({"node", ObjectOf(ShapeIn<NicChangeFields>), Optional("the preset's"),
                  "the keys of NICs may stand in it", R"({"nics": 4})"});
  std::vector<std::string> words;
  for (const ValueName<FabricWord>& word : kFabricWords) words.emplace_back(word.name);
  keys.push_back(
      {"fabric",
       Either({OneOf(std::move(words)), FabricShape(), ObjectOf(ShapeIn<TreeChangeFields>)}),
       Optional("the preset's"),
       "what joins the machines; without a \"kind\", what differs from the preset's", "\"rails\""});
  const std::vector<JsonKey>& tree = TreeChangeFields().shape().keys;
  keys.insert(keys.end(), tree.begin(), tree.end());
  return keys;
}

bool IsPresetChange(const std::string& key) {
  const std::string first = key.substr(0, key.find('.'));
  if (first != key) return first == "node" || first == "fabric";
  return std::find(std::begin(kMachineChangeKeys), std::end(kMachineChangeKeys), key) !=
         std::end(kMachineChangeKeys);
}

std::optional<MachineChanges> ReadPresetChanges(const JsonReader& object) {
  const std::vector<JsonKey> keys = PresetChangeKeys();
  const bool is_changed = std::any_of(keys.begin(), keys.end(),
                                      [&](const JsonKey& key) { return object.Has(key.name); });
  if (!is_changed) return std::nullopt;
  MachineChanges changes;
  NicChangeFields().ReadInto(object, &changes.nics);
  TreeChangeFields().ReadInto(object, &changes.tree);
  if (object.Has("node")) ReadNode(object.At("node"), &changes.nics);
  if (object.Has("fabric")) ReadChangedFabric(object.At("fabric"), &changes);
  return changes;
}

}  // namespace rehearse
