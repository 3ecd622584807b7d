#include "tests/measured/measured_tables.h"

#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "collectives/algorithms/algorithm.h"
#include "sim/base/error.h"
#include "tests/support/places.h"

namespace rehearse {
namespace {

struct File {
  std::vector<MeasuredTable> tables;
  std::map<std::string, FittedNumbers> fitted;
};

std::vector<std::string> SplitAtBars(const std::string& text) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  std::string part;
  while (std::getline(stream, part, '|')) {
    const size_t begin = part.find_first_not_of(' ');
    const size_t end = part.find_last_not_of(' ');
    parts.push_back(begin == std::string::npos ? "" : part.substr(begin, end - begin + 1));
  }
  return parts;
}

CollectiveKind KindOf(const std::string& name) {
  for (const CollectiveKind kind : kCollectiveKinds)
    if (name == Name(kind)) return kind;
  throw Error(fmt::format("measured_tables.txt: no collective \"{}\"", name));
}

LinkKind LinkKindOf(const std::string& name) {
  for (const LinkKind kind : {LinkKind::kNvLink, LinkKind::kXgmi, LinkKind::kPcie,
                              LinkKind::kSocket, LinkKind::kNetwork, LinkKind::kMemory})
    if (name == Name(kind)) return kind;
  throw Error(fmt::format("measured_tables.txt: no kind of link \"{}\"", name));
}

// "table MACHINE | CLUSTER | RANKS | GROUPS | KIND"
MeasuredTable ReadHead(const std::string& text) {
  const std::vector<std::string> parts = SplitAtBars(text);
  CHECK_EQ(parts.size(), 5u);
  MeasuredTable table;
  table.machine = parts[0];
  table.cluster = parts[1];
  table.ranks = parts[2];
  table.groups = static_cast<uint32_t>(std::stoul(parts[3]));
  table.kind = KindOf(parts[4]);
  return table;
}

// "fitted MACHINE | LINKS GB/S EFFICIENCY | MICROSECONDS [channels]", "-" for what was not fitted
void ReadFitted(const std::string& text, std::map<std::string, FittedNumbers>* fitted) {
  const std::vector<std::string> parts = SplitAtBars(text);
  CHECK_EQ(parts.size(), 3u);
  FittedNumbers numbers;
  if (parts[1] != "-") {
    std::stringstream stream(parts[1]);
    std::string kind;
    stream >> kind >> numbers.gigabytes_per_second >> numbers.efficiency;
    numbers.kind = LinkKindOf(kind);
    numbers.has_efficiency = true;
  }
  if (parts[2] != "-") {
    std::stringstream stream(parts[2]);
    std::string rest;
    stream >> numbers.launching_us >> rest;
    numbers.by_channel = rest == "channels";
    numbers.has_launching = true;
  }
  fitted->emplace(parts[0], numbers);
}

File Read() {
  File file;
  std::ifstream stream(SourceDir() + "/tests/measured/measured_tables.txt");
  std::string line;
  while (std::getline(stream, line)) {
    if (line.empty() || line[0] == '#') continue;
    const std::string word = line.substr(0, line.find(' '));
    const std::string rest = line.substr(line.find(' ') + 1);
    if (word == "table") {
      file.tables.push_back(ReadHead(rest));
    } else if (word == "source") {
      file.tables.back().source = rest;
    } else if (word == "nccl") {
      file.tables.back().nccl = ParseNcclVersion(rest);
    } else if (word == "fitted") {
      ReadFitted(rest, &file.fitted);
    } else {
      std::stringstream points(line);
      std::string point;
      while (points >> point) {
        const size_t colon = point.find(':');
        CHECK(colon != std::string::npos);
        file.tables.back().points.push_back(
            {std::stod(point.substr(0, colon)), std::stod(point.substr(colon + 1))});
      }
    }
  }
  return file;
}

const File& TheFile() {
  static const File file = Read();
  return file;
}

}  // namespace

const std::vector<MeasuredTable>& MeasuredTables() { return TheFile().tables; }
const std::map<std::string, FittedNumbers>& NumbersFitted() { return TheFile().fitted; }

}  // namespace rehearse
