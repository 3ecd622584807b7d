#include "scenarios/readers/collective_pins.h"

#include <algorithm>

#include <fmt/format.h>

#include "collectives/algorithms/algorithm.h"
#include "sim/base/known_names.h"

namespace rehearse {
namespace {

// Nothing if neither algorithm nor protocol is given.
std::optional<CollectivePin> ReadPin(const JsonReader& reader) {
  if (!reader.Has("algorithm") && !reader.Has("protocol")) return std::nullopt;
  CollectivePin pin;
  pin.place = reader.place();
  if (reader.Has("algorithm")) pin.algorithm = reader.At("algorithm").StringBy(ParseAlgorithm);
  if (reader.Has("protocol")) pin.protocol = reader.At("protocol").StringBy(ParseProtocol);
  return pin;
}

std::vector<std::string> KindNames() {
  std::vector<std::string> names;
  for (const CollectiveKind kind : kCollectiveKinds) names.emplace_back(Name(kind));
  return names;
}

const ObjectShape& PinShape() {
  static const ObjectShape shape = {
      "collective",
      "How collectives of one kind, on one axis of the mesh, or both run; the last entry that fits "
      "counts.",
      {{"kind", OneOf(KindNames()), Optional("every kind"), "kind of collective"},
       {"axis", AText(), Optional("every axis"), "name of a communicator", "\"data\""},
       PinnedAlgorithm(),
       PinnedProtocol()}};
  return shape;
}

CollectivePin ReadEntry(const JsonReader& object) {
  const JsonReader reader = object.As(PinShape());
  std::optional<CollectivePin> pin = ReadPin(reader);
  if (!pin) reader.Fail("the entry pins nothing; expected \"algorithm\" or \"protocol\"");
  if (!reader.Has("kind") && !reader.Has("axis"))
    reader.Fail("the entry selects nothing; expected \"kind\" or \"axis\"");
  if (reader.Has("axis")) pin->axis = reader.At("axis").String();
  if (reader.Has("kind")) pin->kind = kCollectiveKinds[reader.At("kind").Choice()];
  return *pin;
}

void CheckAxis(const CollectivePin& pin, const Schedule& schedule) {
  if (pin.axis.empty()) return;
  std::vector<std::string> names;
  for (const Communicator& communicator : schedule.communicators)
    names.push_back(communicator.name());
  if (std::find(names.begin(), names.end(), pin.axis) == names.end()) {
    throw Error(pin.place,
                fmt::format("there is no axis \"{}\"{}", pin.axis, KnownNames(pin.axis, names)));
  }
}

void Apply(const CollectivePin& pin, const Schedule& schedule, Collective* collective) {
  const std::string& axis = schedule.communicators[collective->communicator.index()].name();
  if (!Fits(pin, collective->kind, axis)) return;
  if (pin.bytes && *pin.bytes != collective->bytes) return;
  if (pin.algorithm != AlgorithmId::kAuto) {
    try {
      CheckKind(FindAlgorithm(pin.algorithm), collective->kind);
    } catch (const Error& error) {
      throw Error(pin.place, error.what());
    }
  }
  collective->algorithm = pin.algorithm;
  collective->protocol = pin.protocol;
}

}  // namespace

JsonKey PinnedAlgorithm() {
  std::vector<std::string> names = {"auto"};
  for (const Algorithm& row : Algorithms()) names.emplace_back(row.name());
  return {"algorithm", OneOf(std::move(names)), Default("\"auto\""),
          "how collectives run, as NCCL_ALGO would set it; auto: as the library chooses"};
}

JsonKey PinnedProtocol() {
  return {
      "protocol", OneOf({"auto", "none", "ll", "ll128", "simple"}), Default("\"auto\""),
      "the protocol, as NCCL_PROTO would set it; none: bare links; auto: as the library chooses"};
}

JsonShape PinsShape() { return ListOf(ObjectOf(PinShape)); }

std::vector<CollectivePin> ReadCollectivePins(const JsonReader& simulator) {
  std::vector<CollectivePin> pins;
  if (const auto all = ReadPin(simulator)) pins.push_back(*all);
  if (simulator.Has("collectives")) {
    for (const JsonReader& entry : simulator.At("collectives").Elements())
      pins.push_back(ReadEntry(entry));
  }
  return pins;
}

bool Fits(const CollectivePin& pin, CollectiveKind kind, const std::string& axis) {
  return (!pin.kind || *pin.kind == kind) && (pin.axis.empty() || pin.axis == axis);
}

void LeaveToLibrary(Schedule* schedule) {
  for (Role& role : schedule->roles) {
    for (Op& op : role.ops) {
      auto* const collective = std::get_if<Collective>(&op.work);
      if (collective == nullptr || IsHostCopy(collective->kind) || collective->copied) continue;
      collective->algorithm = AlgorithmId::kAuto;
      collective->protocol = Protocol::kAuto;
    }
  }
}

void ApplyCollectivePins(const std::vector<CollectivePin>& pins, Schedule* schedule) {
  for (const CollectivePin& pin : pins) CheckAxis(pin, *schedule);
  for (Role& role : schedule->roles) {
    for (Op& op : role.ops) {
      auto* const collective = std::get_if<Collective>(&op.work);
      if (collective == nullptr || IsHostCopy(collective->kind) || collective->copied) continue;
      for (const CollectivePin& pin : pins) Apply(pin, *schedule, collective);
    }
  }
}

}  // namespace rehearse
