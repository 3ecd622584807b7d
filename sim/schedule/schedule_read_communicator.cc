// A communicator of a schedule file: lists of ranks, or the axes of a mesh.
#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/schedule/schedule_fields.h"
#include "sim/schedule/schedule_read_parts.h"

namespace rehearse {
namespace {

// "0-3,8,16-64:8", of ranks below `ranks`.
std::vector<uint32_t> ParseRanges(const JsonReader& reader, uint32_t ranks) {
  const std::string text = reader.String();
  std::vector<uint32_t> list;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto fail = [&] {
    reader.Expected(fmt::format("ranks from 0 to {} such as \"0-3,8,16-64:8\"", ranks - 1));
  };
  const auto number = [&] {
    uint32_t value = 0;
    const auto [stop, fault] = std::from_chars(at, end, value);
    if (fault != std::errc()) fail();
    at = stop;
    return value;
  };
  const auto skip = [&](char wanted) {
    if (at == end || *at != wanted) return false;
    ++at;
    return true;
  };
  do {
    const uint32_t first = number();
    const uint32_t last = skip('-') ? number() : first;
    const uint32_t stride = last != first && skip(':') ? number() : 1;
    if (last < first || last >= ranks || stride == 0) fail();
    for (uint64_t rank = first; rank <= last; rank += stride) {
      list.push_back(static_cast<uint32_t>(rank));
      if (list.size() > ranks) reader.Fail("found a rank more than once");
    }
  } while (skip(','));
  if (at != end) fail();
  return list;
}

std::vector<uint32_t> ReadRanks(const JsonReader& reader, uint32_t ranks) {
  std::vector<uint32_t> list;
  if (reader.IsString() && reader.String() == "all") {
    for (uint32_t rank = 0; rank < ranks; ++rank) list.push_back(rank);
  } else if (reader.IsString()) {
    list = ParseRanges(reader, ranks);
  } else {
    if (!reader.IsArray())
      reader.Expected("ranks: \"all\", ranges such as \"0-3,8\", or a list such as [0, 1]");
    for (const JsonReader& rank : reader.Elements())
      list.push_back(CountAt(rank, 0, int64_t{ranks} - 1));
  }
  if (list.empty()) reader.Expected("at least one rank");
  return list;
}

std::vector<StridedAxis> ReadAxes(const JsonReader& reader) {
  std::vector<StridedAxis> axes;
  for (const JsonReader& axis : reader.Elements()) {
    const std::vector<JsonReader> numbers = axis.Elements();
    if (numbers.size() != 2) axis.Expected("an axis as [extent, stride]");
    axes.push_back({CountAt(numbers[0], 1, kMostRanks), CountAt(numbers[1], 1, kMostRanks)});
  }
  return axes;
}

// Together the axes of a mesh must meet each of its ranks once, as Communicator::Strided wants.
void CheckMesh(const JsonReader& reader, std::vector<StridedAxis> axes,
               const std::vector<StridedAxis>& more, uint32_t ranks) {
  axes.insert(axes.end(), more.begin(), more.end());
  std::erase_if(axes, [](const StridedAxis& axis) { return axis.extent == 1; });
  std::sort(axes.begin(), axes.end(),
            [](const StridedAxis& a, const StridedAxis& b) { return a.stride < b.stride; });
  uint64_t product = 1;
  for (const StridedAxis& axis : axes) {
    if (axis.stride != product)
      reader.Fail(
          fmt::format("the axes do not form a mesh: found a stride of {}, expected {}, "
                      "the product of the extents of smaller strides",
                      axis.stride, product));
    product *= axis.extent;
    if (product > ranks)
      reader.Fail(fmt::format("the mesh has at least {} ranks, but there are {}", product, ranks));
  }
}

}  // namespace

Communicator ReadCommunicator(const JsonReader& object, uint32_t ranks) {
  const JsonReader reader = object.As(CommunicatorShape());
  const std::string name = reader.At("name").String();
  const int forms = int{reader.Has("ranks")} + int{reader.Has("groups")} + int{reader.Has("mesh")};
  if (forms != 1)
    reader.Fail(fmt::format("found {} of the keys \"ranks\", \"groups\" and \"mesh\", expected one",
                            forms == 0 ? "none" : "more than one"));
  if (reader.Has("mesh")) {
    const JsonReader mesh = reader.At("mesh").As(CommunicatorMeshShape());
    const std::vector<StridedAxis> members = ReadAxes(mesh.At("members"));
    const std::vector<StridedAxis> groups = ReadAxes(mesh.At("groups"));
    CheckMesh(mesh, members, groups, ranks);
    return Communicator::Strided(name, members, groups);
  }
  std::vector<std::vector<uint32_t>> groups;
  std::vector<bool> is_known(ranks);
  const auto add = [&](const JsonReader& group) {
    groups.push_back(ReadRanks(group, ranks));
    if (groups.back().size() != groups.front().size())
      group.Fail(fmt::format("found a group of {} ranks, expected {} as in the first group",
                             groups.back().size(), groups.front().size()));
    for (const uint32_t rank : groups.back()) {
      if (is_known[rank]) group.Fail(fmt::format("found rank {} for the second time", rank));
      is_known[rank] = true;
    }
  };
  if (reader.Has("ranks")) {
    add(reader.At("ranks"));
  } else {
    for (const JsonReader& group : reader.At("groups").Elements()) add(group);
    if (groups.empty()) reader.At("groups").Expected("at least one group of ranks");
  }
  return Communicator::Explicit(name, groups);
}

}  // namespace rehearse
