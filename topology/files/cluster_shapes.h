// What the three forms of a cluster file, preset, compact and graph, have in common
// (topology/files/cluster_file.h says what they mean).
#pragma once

#include <string>
#include <vector>

#include "sim/base/json_fields.h"
#include "topology/presets/presets.h"

namespace rehearse {

inline constexpr uint32_t kMostCounted = 1u << 20;  // of anything that is counted

// A preset with changes: for all presets, and for one.
const ObjectShape& PresetClusterShape();
const ObjectShape& PresetClusterShape(const ClusterPreset& preset);

const ObjectShape& CompactClusterShape();  // topology/files/compact_form.h
const ObjectShape& GraphClusterShape();    // topology/files/graph_file.h

// The kinds of links, in the order of the tables' choices.
inline constexpr LinkKind kLinkKindChoices[] = {LinkKind::kNvLink,  LinkKind::kXgmi,
                                                LinkKind::kPcie,    LinkKind::kSocket,
                                                LinkKind::kNetwork, LinkKind::kMemory};

// A link whose place says which kind it is, and those rows of a graph's link.
const Fields<ClusterLink>& LinkFields();
FieldList<ClusterLink> LinkRowsOfGraph();
// With its kind where the place suggests another.
void WriteLinkAt(LinkKind suggested, const ClusterLink& link, nlohmann::ordered_json* to);

template <LinkKind kKind>
FieldShape ALink() {
  return ReadBy<ClusterLink>(
      ObjectOf(ShapeIn<LinkFields>),
      [](const JsonReader& reader, ClusterLink* link) {
        *link = ClusterLink();
        link->kind = kKind;
        LinkFields().ReadInto(reader.As(LinkFields().shape()), link);
      },
      [](const ClusterLink& link, nlohmann::ordered_json* to) { WriteLinkAt(kKind, link, to); });
}

// Of a struct that has one link, or may have one.
template <LinkKind kKind, typename T, typename Member>
Field<T> LinkRow(const char* name, Member T::*member, Presence presence, const char* about) {
  return {name,           member,
          ALink<kKind>(), std::move(presence),
          about,          R"({"bandwidth": "50GBps", "latency": "3.5us"})"};
}

// ---- Rows that the compact form and the graph have ----------------------------------------------

FieldShape ANetworkPlugin();

template <typename T>
Field<T> NetworkPluginRow(std::string T::*member, const char* otherwise) {
  return {"network_plugin", member, ANetworkPlugin(), Optional(otherwise),
          "NCCL's network plugin, which decides latency and the protocols that can be used"};
}

template <typename T>
Field<T> NotesRow(std::vector<std::string> T::*member) {
  return {
      "notes", member, ListOf(AText()), Usual(), "remarks for the reader", R"(["as of March"])"};
}

// What is read after the cluster: "calibration", "device_points", "rings", "edits".
std::vector<JsonKey> MeasuredAndEditedKeys();
template <typename T>
Field<T> MeasuredAndEdited() {
  FieldList<T> rows;
  for (JsonKey& key : MeasuredAndEditedKeys()) rows.emplace_back(std::move(key));
  return rows;
}

}  // namespace rehearse
