#include "topology/files/fabric_file.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "topology/files/cluster_shapes.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostOfASwitch = 4096;

Field<RoutingRule> RoutingRow(const FabricChoices& fabric) {
  return {"routing", &RoutingRule::choice, OneNamedOf(fabric.choices), Usual(),
          "how one of several equal paths is chosen"};
}

const ObjectShape& SwitchFabricShape() {
  static const ObjectShape shape = {
      "fabric: switch",
      "One switch that passes everything.",
      {{"kind", OneOf({"switch"}), Required(), "which fabric"},
       {"name", AText(), Default("\"fabric\""), "what the switch is called", "\"switch\""}}};
  return shape;
}

// ---- Levels of switches -------------------------------------------------------------------------

constexpr FlagName<ClosSpec> kClosKinds[] = {
    {"fat-tree"}, {"rails", &ClosSpec::rails}, {"rail-only", &ClosSpec::rail_only}};

// At most what leaves a leaf one port upwards.
void ReadOversubscription(const JsonReader& reader, ClosSpec* clos) {
  clos->oversubscription = reader.Number(1, clos->radix - 1);
}
void WriteOversubscription(const ClosSpec& clos, Json* to) { *to = clos.oversubscription; }

void CheckClos(const JsonReader& reader, ClosSpec* clos) {
  if (reader.Has("rails") && !clos->rails)
    reader.At("rails").Fail("only a fabric of kind \"rails\" has them");
  if (clos->rail_only && reader.Has("planes"))
    reader.At("planes").Fail("a rail of a fabric of kind \"rail-only\" is a plane already");
  if (clos->radix % 2 != 0) reader.At("radix").Expected("an even number of ports");
  if (reader.Has("queue_pairs") && clos->routing.choice != RouteChoice::kEcmp)
    reader.At("queue_pairs").Fail("queue pairs are hashed by routing \"ecmp\"");
}

const Fields<ClosSpec>& ClosFields() {
  static const Fields<ClosSpec> fields(
      "fabric: fat-tree, rails, rail-only",
      "Levels of switches; rails: NICs with the same number share a leaf; rail-only: they share a "
      "tree that is not joined to the others.",
      {{"kind", kItself, OneFlagOf(kClosKinds), Required(), "which fabric"},
       {"radix", &ClosSpec::radix, AWhole(4, kMostOfASwitch), Required(),
        "ports of a switch, an even number", "64"},
       {"levels", &ClosSpec::levels, AWhole(1, 6), Optional("as few as are needed"),
        "levels of switches", "3"},
       {"oversubscription", kItself,
        ReadBy(ANumber(1, kMostOfASwitch), ReadOversubscription, WriteOversubscription), Usual(),
        "oversubscription at the leaves", "2"},
       {"planes", &ClosSpec::planes, AWhole(1, kMostOfASwitch), Usual(),
        "parallel trees; port p of a machine is cabled to tree p modulo their number", "2"},
       {"rails", &ClosSpec::rail_count, AWhole(1, kMostOfASwitch),
        Optional("one for each port of a node"),
        "of kind rails: how many; port p of a node is on rail p modulo their number, and a leaf "
        "has whole nodes",
        "4"},
       {"whole_nodes", &ClosSpec::whole_machines, TrueFalse(), Usual(),
        "whether a leaf takes whole nodes, so that ports may be idle; false: they are filled, and "
        "nodes lie across two leaves",
        "false"},
       Within(&ClosSpec::routing,
              FieldList<RoutingRule>{
                  RoutingRow(ChoicesOfFatTree()),
                  {"queue_pairs", &RoutingRule::queue_pairs, AWhole(1, kMostQueuePairs), Usual(),
                   "queue pairs of a pair of ranks, each hashed separately (ecmp)", "4"}}),
       LinkRow<LinkKind::kNetwork>("cable", &ClosSpec::cable, Required(),
                                   "a cable between switches")},
      CheckClos);
  return fields;
}

// ---- Groups of switches -------------------------------------------------------------------------

using LocalDimension = DragonflySpec::Dimension;

const Fields<LocalDimension>& LocalDimensionFields() {
  static const Fields<LocalDimension> fields(
      "dimension of a dragonfly's group", "Switches that are joined all to all.",
      {{"size", &LocalDimension::size, AWhole(1, kMostOfASwitch), Required(), "how many switches",
        "32"},
       LinkRow<LinkKind::kNetwork>("link", &LocalDimension::link, Required(),
                                   "the link between two of them")});
  return fields;
}

void CheckGroup(const JsonReader& reader, DragonflySpec* dragonfly) {
  constexpr uint64_t kMostSwitches = 4096;
  uint64_t switches = 1;
  for (const LocalDimension& dimension : dragonfly->local) {
    switches *= dimension.size;
    if (switches > kMostSwitches) reader.At("local").Fail("a group has more than 4096 switches");
  }
  if (dragonfly->local.empty()) reader.At("local").Expected("at least one dimension");
}

const Fields<DragonflySpec>& DragonflyFields() {
  using Dragonfly = DragonflySpec;
  static const Fields<Dragonfly> fields(
      "fabric: dragonfly", "Groups of switches; every two groups are joined.",
      {{"kind", OneOf({"dragonfly"}), Required(), "which fabric"},
       {"local", &Dragonfly::local, ListOf(ObjectIn<LocalDimensionFields>()), Required(),
        "dimensions of a group, each joined all to all",
        R"([{"size": 32, "link": {"bandwidth": "25GBps", "latency": "0.3us"}}])"},
       {"nodes_per_switch", &Dragonfly::machines_per_switch, AWhole(1, kMostOfASwitch), Required(),
        "machines on each switch", "2"},
       {"global_cables", &Dragonfly::global_cables, AWhole(1, kMostCounted), Required(),
        "global cables of each group", "64"},
       RoutingRow(ChoicesOfDragonfly()).Within(&Dragonfly::routing),
       LinkRow<LinkKind::kNetwork>("cable", &Dragonfly::global, Required(),
                                   "one of the global cables")},
      CheckGroup);
  return fields;
}

void CompleteHyperX(const JsonReader& reader, DragonflySpec* hyperx) {
  CheckGroup(reader, hyperx);
  hyperx->is_hyperx = true;
  hyperx->global = hyperx->local.front().link;
  if (!reader.Has("routing")) hyperx->routing.choice = RouteChoice::kDimensionOrder;
}

const Fields<DragonflySpec>& HyperXFields() {
  using Dragonfly = DragonflySpec;
  static const Fields<Dragonfly> fields(
      "fabric: hyperx", "A grid of switches in which every dimension is joined all to all.",
      {{"kind", OneOf({"hyperx"}), Required(), "which fabric"},
       {"local", &Dragonfly::local, ListOf(ObjectIn<LocalDimensionFields>()), Required(),
        "dimensions of the grid, each joined all to all",
        R"([{"size": 8, "link": {"bandwidth": "50GBps", "latency": "0.3us"}}])"},
       {"nodes_per_switch", &Dragonfly::machines_per_switch, AWhole(1, kMostOfASwitch), Required(),
        "machines on each switch", "2"},
       Field<RoutingRule>("routing", &RoutingRule::choice, OneNamedOf(ChoicesOfHyperX().choices),
                          Optional("dimension-order"),
                          "dimension after dimension, or by way of a switch that the flow chooses")
           .Within(&Dragonfly::routing)},
      CompleteHyperX);
  return fields;
}

// ---- Grids --------------------------------------------------------------------------------------

using GridDimension = TorusSpec::Dimension;

const Fields<GridDimension>& GridDimensionFields() {
  static const Fields<GridDimension> fields(
      "dimension of a torus", "Nodes in a row.",
      {{"size", &GridDimension::size, AWhole(1, kMostCounted), Required(), "how many nodes", "4"},
       LinkRow<LinkKind::kNetwork>("link", &GridDimension::link, Required(),
                                   "the link between neighbours"),
       {"wraps", &GridDimension::wraps, TrueFalse(), Optional("a torus does, a mesh does not"),
        "whether the last and the first are neighbours", "true"},
       {"twist", &GridDimension::twist, ListOf(AWhole(0, kMostCounted)), Optional("none"),
        "how far going round it once leads along each dimension", "[0, 0, 4]"}});
  return fields;
}

void CompleteGrid(const JsonReader& reader, TorusSpec* torus) {
  const bool wraps = reader.At("kind").String() == "torus";
  const std::vector<JsonReader> dimensions = reader.At("dimensions").Elements();
  for (size_t i = 0; i < dimensions.size(); ++i) {
    if (!dimensions[i].Has("wraps")) torus->dimensions[i].wraps = wraps;
  }
  if (dimensions.empty()) reader.At("dimensions").Expected("at least one dimension");
  for (size_t i = 0; i < dimensions.size(); ++i)
    if (const std::string wrong = WrongTwist(*torus, i); !wrong.empty())
      dimensions[i].At("twist").Fail(wrong);
}

const Fields<TorusSpec>& TorusFields() {
  static const Fields<TorusSpec> fields(
      "fabric: torus, mesh", "Each node is joined to its neighbours.",
      {{"kind", OneOf({"torus", "mesh"}), Required(), "which fabric"},
       {"dimensions", &TorusSpec::dimensions, ListOf(ObjectIn<GridDimensionFields>()), Required(),
        "dimensions of the grid",
        R"([{"size": 4, "link": {"bandwidth": "50GBps", "latency": "1us"}}])"}},
      CompleteGrid);
  return fields;
}

}  // namespace

JsonShape FabricShape() {
  return Either({ObjectOf(SwitchFabricShape), ObjectOf(ShapeIn<ClosFields>),
                 ObjectOf(ShapeIn<DragonflyFields>), ObjectOf(ShapeIn<HyperXFields>),
                 ObjectOf(ShapeIn<TorusFields>)});
}

FabricSpec ReadFabric(const JsonReader& reader) {
  if (!reader.IsObject()) reader.Expected("an object that describes a fabric");
  const std::vector<std::string> kinds = {"switch",    "fat-tree", "rails", "rail-only",
                                          "dragonfly", "hyperx",   "torus", "mesh"};
  const std::string kind = kinds[reader.At("kind").Choice(kinds)];
  if (kind == "dragonfly") return DragonflyFields().Read(reader);
  if (kind == "hyperx") return HyperXFields().Read(reader);
  if (kind == "torus" || kind == "mesh") return TorusFields().Read(reader);
  if (kind != "switch") return ClosFields().Read(reader);
  const JsonReader name = reader.As(SwitchFabricShape()).At("name");
  if (name.String().empty()) name.Expected("a text that is not empty");
  return OneSwitch(name.String());
}

Json FabricToJson(const FabricSpec& fabric) {
  Json json;
  if (const auto* torus = std::get_if<TorusSpec>(&fabric)) {
    const bool wraps = std::any_of(torus->dimensions.begin(), torus->dimensions.end(),
                                   [](const GridDimension& dimension) { return dimension.wraps; });
    json["kind"] = wraps ? "torus" : "mesh";
    TorusFields().Write(*torus, &json);
    return json;
  }
  if (const auto* dragonfly = std::get_if<DragonflySpec>(&fabric)) {
    json["kind"] = dragonfly->is_hyperx ? "hyperx" : "dragonfly";
    (dragonfly->is_hyperx ? HyperXFields() : DragonflyFields()).Write(*dragonfly, &json);
    return json;
  }
  const auto& clos = std::get<ClosSpec>(fabric);
  static const ClosSpec one_switch = OneSwitch();
  if (clos.radix == one_switch.radix) {
    json["kind"] = "switch";
    if (clos.hub != one_switch.hub) json["name"] = clos.hub;
    return json;
  }
  ClosFields().Write(clos, &json);
  return json;
}

}  // namespace rehearse
