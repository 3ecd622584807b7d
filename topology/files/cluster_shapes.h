// The tables of a cluster file's three forms, preset, compact and graph
// (topology/files/cluster_file.h says what they mean).
#pragma once

#include "sim/base/json_shape.h"
#include "topology/presets/presets.h"

namespace rehearse {

inline constexpr uint32_t kMostCounted = 1u << 20;  // of anything that is counted

// A preset with changes: for all presets, and for one.
const ObjectShape& PresetClusterShape();
const ObjectShape& PresetClusterShape(const ClusterPreset& preset);

const ObjectShape& CompactClusterShape();
inline constexpr const char* kPresetNode = "where \"node\" is a preset";
const ObjectShape& LinkShape();
const ObjectShape& MachineNodeShape();
const ObjectShape& MoreNicsShape();
const ObjectShape& SwitchFabricShape();
const ObjectShape& FatTreeShape();
const ObjectShape& DragonflyShape();
const ObjectShape& DragonflyDimensionShape();
const ObjectShape& TorusShape();
const ObjectShape& TorusDimensionShape();

const ObjectShape& GraphClusterShape();
const ObjectShape& VertexShape();
const ObjectShape& GraphLinkShape();

// The kinds of links, in the order of the tables' choices.
inline constexpr LinkKind kLinkKindChoices[] = {LinkKind::kNvLink,  LinkKind::kXgmi,
                                                LinkKind::kPcie,    LinkKind::kSocket,
                                                LinkKind::kNetwork, LinkKind::kMemory};
JsonShape LinkKindShape();

}  // namespace rehearse
